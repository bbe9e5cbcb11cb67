"""What a process does not need it does not load; what it loads leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

# What is done, and what must not be loaded after it. In one process, one after the other: what an earlier step loads
# without need is not found by the later ones alone, so those that may load least come first.
STEPS = (
    (
        "import trivet.models.embed.registry as registry; registry.load('none')",
        {"numpy", "onnxruntime", "tokenizers"},
    ),
    (
        "from trivet.secrets.detect import find; find('The key point: the token budget is 4096.')",
        {"detect_secrets", "requests", "cryptography", "keyring"},
    ),
    (  # a question that the resident process answers should cost little more than the start of Python
        "import trivet.cli.app, trivet.cli.commands.code, trivet.cli.views.code, trivet.serve.resident.code_search, "
        "trivet.serve.mcp.quick_start",
        {"numpy", "tree_sitter", "semble_grammars", "watchfiles"},
    ),
    (
        "import trivet.models.embed as embed; model = embed.load(); model.identity, model.dimension, model.local",
        {"onnxruntime", "tokenizers"},
    ),
    (  # the library of MCP takes longer to load than all of the server
        "import trivet.serve.http.server",
        {"mcp", "mcp_types", "pydantic", "onnxruntime"},
    ),
)


def test_what_is_not_needed_yet_is_not_loaded() -> None:
    checks = (
        f"{step}; print({number}, *({never} & sys.modules.keys()))"
        for number, (step, never) in enumerate(STEPS)
    )
    program = "\n".join(["import sys", *checks])
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stderr == ""
    assert ran.stdout.split() == [str(number) for number in range(len(STEPS))]


def test_the_runtime_reports_to_nobody(tmp_path: Path) -> None:
    """With its telemetry on, ONNX Runtime leaves the id of a session in the temporary folder."""
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
