"""What a process does not need it does not load; what it loads leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path


def test_importing_the_registry_is_light() -> None:
    probe = (
        "import sys, trivet.models.embed.registry as r; r.load('none'); "
        "sys.exit(' '.join({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True).stderr.strip() == ""


def test_loading_the_bundled_model_opens_nothing_yet() -> None:
    probe = (
        "import sys, trivet.models.embed as e; m = e.load(); m.identity, m.dimension, m.local; "
        "sys.exit(' '.join({'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True).stderr.strip() == ""


def test_an_ordinary_note_loads_no_library() -> None:
    code = (
        "import sys; from trivet.secrets.detect import find; find('The key point: the token budget is 4096.');"
        "sys.exit(any(name in sys.modules for name in ('detect_secrets', 'requests', 'cryptography', 'keyring')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_runtime_reports_to_nobody(tmp_path: Path) -> None:
    """With its telemetry on, ONNX Runtime leaves the id of a session in the temporary folder."""
    program = "from trivet.models.embed.onnx import bundled; bundled().embed_query('hello')"
    own = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    subprocess.run([sys.executable, "-c", program], env={**own, "TMPDIR": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_the_surfaces_of_code_search_load_no_parser_and_no_numbers() -> None:
    """A question that the resident process answers should cost little more than the start of Python."""
    probe = (
        "import sys, trivet.cli.app, trivet.cli.commands.code, trivet.cli.views.code, trivet.serve.code_search, "
        "trivet.serve.mcp.greeting; "
        "sys.exit(' '.join({'numpy', 'tree_sitter', 'semble_grammars', 'watchfiles'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True).stderr.strip() == ""
