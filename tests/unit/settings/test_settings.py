"""Settings come from arguments, environment, trivet.toml or defaults; errors name the setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trivet import InvalidInput, Trivet, load_settings
from trivet.settings import CATEGORIES, config_path


def configured(tmp_path: Path, text: str) -> dict[str, str]:
    file = tmp_path / "trivet.toml"
    file.write_text(text, encoding="utf-8")
    return {"TRIVET_CONFIG": str(file)}


def test_default_settings(tmp_path: Path) -> None:
    settings = load_settings({"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)})
    assert settings.path == str(tmp_path / "trivet" / "memory.db")
    assert (settings.scope, settings.embedder, settings.recipe) == ("default", "bundled", "default")
    assert settings.categories == CATEGORIES
    assert {"facts", "preferences", "projects", "people", "decisions"} <= set(CATEGORIES)


def test_source_precedence(tmp_path: Path) -> None:
    environment = configured(tmp_path, 'scope = "file"\nembedder = "none"\nleg_time_limit_ms = 70')
    assert load_settings(environment).scope == "file"
    environment["TRIVET_SCOPE"] = "environment"
    assert load_settings(environment).scope == "environment"
    settings = load_settings(environment, scope="hand")
    assert (settings.scope, settings.embedder, settings.leg_time_limit_ms) == ("hand", "none", 70)
    assert load_settings(environment, scope=None).scope == "environment"


def test_environment_values_are_converted(tmp_path: Path) -> None:
    environment = {
        "TRIVET_LEG_TIME_LIMIT_MS": "250",
        "TRIVET_BACKGROUND": "false",
        "TRIVET_CATEGORIES": "facts, recipes",
        "TRIVET_PATH": "/somewhere/memory.db",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    settings = load_settings(environment)
    assert (settings.leg_time_limit_ms, settings.background) == (250, False)
    assert settings.categories == ("facts", "recipes")
    assert settings.path == "/somewhere/memory.db"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("scope = ", "TOML"),
        ('colour = "red"', "colour"),
        ("leg_time_limit_ms = 0", "leg_time_limit_ms"),
        ('leg_time_limit_ms = "soon"', "leg_time_limit_ms"),
        ("categories = []", "categories"),
        ('scope = "not a scope"', "scope"),
    ],
)
def test_invalid_file_error_names_file_and_fault(tmp_path: Path, text: str, names: str) -> None:
    with pytest.raises(InvalidInput, match=names) as caught:
        load_settings(configured(tmp_path, text))
    assert "trivet.toml" in str(caught.value)


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InvalidInput, match=r"folder\.toml"):
        load_settings({"TRIVET_CONFIG": str(tmp_path / "folder.toml")})
    (tmp_path / "latin.toml").write_bytes(b'scope = "caf\xe9"')
    with pytest.raises(InvalidInput, match=r"latin\.toml"):
        load_settings({"TRIVET_CONFIG": str(tmp_path / "latin.toml")})


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ({"embeder": "none"}, "embeder"),
        ({"embedder": "nonsense"}, "nonsense"),
        ({"recipe": "magic()"}, "magic"),
        ({"scope": "not a scope"}, "scope"),
        ({"busy_time_limit_ms": 0}, "busy_time_limit_ms"),
    ],
)
def test_invalid_argument_writes_nothing(path: Path, overrides: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidInput, match=names):
        Trivet.open(path, **overrides)
    assert not path.exists()


def test_file_in_working_directory_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloned repository must not redirect memories to another server."""
    (tmp_path / "trivet.toml").write_text('embedder = "openai:evil@http://evil.example/v1"')
    monkeypatch.chdir(tmp_path)
    assert load_settings({"XDG_CONFIG_HOME": str(tmp_path / "config")}).embedder == "bundled"


def test_config_path(tmp_path: Path) -> None:
    assert config_path({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "trivet" / "trivet.toml"
    assert config_path({"TRIVET_CONFIG": "/elsewhere.toml"}) == Path("/elsewhere.toml")


def test_settings_reach_the_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVET_SCOPE", "from/environment")
    monkeypatch.setenv("TRIVET_CATEGORIES", "recipes,facts")
    monkeypatch.setenv("TRIVET_PATH", str(path))
    with Trivet.open(embedder="none", background=False) as trivet:
        id = trivet.remember("Boil the water.", category="recipes").id
        assert trivet.get(id).scope == "from/environment"
        with pytest.raises(InvalidInput, match="recipes, facts"):
            trivet.remember("text", category="code")
    assert path.exists()
