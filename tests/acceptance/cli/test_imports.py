"""A process loads only the modules it needs, and they leave nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

# Each step and what must not be loaded after it. The steps run in one process: a module loaded too
# early by one step goes unnoticed in later steps, so the steps that may load least come first.
STEPS = (
    (
        "import trivet.models.embed.registry as registry; registry.load('none')",
        {"numpy", "onnxruntime", "tokenizers"},
    ),
    (
        "from trivet.secrets.detect import find; find('The key point: the token budget is 4096.')",
        {"detect_secrets", "requests", "cryptography", "keyring"},
    ),
    (  # a query answered by the resident process should cost little more than starting Python
        "import trivet.cli.app, trivet.cli.commands.code, trivet.cli.views.code, trivet.serve.resident.code_search, "
        "trivet.serve.mcp.quick_start",
        {"numpy", "tree_sitter", "semble_grammars", "watchfiles"},
    ),
    (
        "import trivet.models.embed as embed; model = embed.load(); model.identity, model.dimension, model.local",
        {"onnxruntime", "tokenizers"},
    ),
    (  # the MCP library takes longer to load than the whole server
        "import trivet.serve.http.server",
        {"mcp", "mcp_types", "pydantic", "onnxruntime"},
    ),
)


def test_unneeded_modules_are_not_loaded() -> None:
    checks = (
        f"{step}; print({number}, *({never} & sys.modules.keys()))"
        for number, (step, never) in enumerate(STEPS)
    )
    program = "\n".join(["import sys", *checks])
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stderr == ""
    assert ran.stdout.split() == [str(number) for number in range(len(STEPS))]


def test_onnx_runtime_telemetry_is_off(tmp_path: Path) -> None:
    """With its telemetry on, ONNX Runtime leaves a session id in the temporary folder."""
    program = "from trivet.models.embed.onnx import bundled; bundled().embed_query('hello')"
    own = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CI", "ORT_DISABLE_TELEMETRY")
    }
    subprocess.run(
        [sys.executable, "-c", program], env={**own, "TMPDIR": str(tmp_path)}, check=True
    )
    assert list(tmp_path.iterdir()) == []
