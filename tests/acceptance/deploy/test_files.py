"""The deployment files name only existing settings, commands, options, routes and paths."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer
import yaml

from support.command_line import CommandLine
from support.postgres_server import PostgresServer
from trivet import Settings, StoreError, Trivet
from trivet.cli.app import root_command
from trivet.contract import VERBS
from trivet.settings import load_settings
from trivet.store.postgres import Server
from trivet.store.postgres.migrate import SCHEMA_VERSION

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
GUIDE = ROOT / "docs" / "deploy.md"
FILES = [*sorted(path for path in DEPLOY.iterdir() if path.name != ".env"), GUIDE]
# Read outside the settings.
OTHER_VARIABLES = {"TRIVET_CONFIG"}
KNOWN = {f"TRIVET_{name.upper()}" for name in Settings.__struct_fields__} | OTHER_VARIABLES


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def compose() -> Any:
    (value,) = documents("compose.yaml")
    return value


def objects() -> dict[str, Any]:
    return {one["kind"]: one for one in documents("kubernetes.yaml")}


def container() -> Any:
    (one,) = objects()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return one


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def instruction(name: str) -> str:
    return [rest for found, rest in instructions() if found == name][-1]


def test_image_script_covers_the_dockerfile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """scripts/try_image.py knows every instruction except commands and copying the whole source."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("try_image")
    stage = script.Stage(tmp_path)
    steps = [(name, rest) for name, rest in script.instructions() if name not in ("FROM", "RUN")]
    for name, rest in steps:
        if rest != "src src" and "--from" not in rest:
            script.perform(stage, name, rest, {})
    assert "src" in script.context()[0]
    assert (tmp_path / "build" / "pyproject.toml").exists()
    assert stage.environment["PATH"].startswith("/opt/trivet/bin:/usr/local/sbin")
    assert stage.declared["USER"] == "10001:10001"
    with pytest.raises(SystemExit, match="ONBUILD"):
        script.perform(stage, "ONBUILD", "RUN true", {})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_variable_is_a_setting(path: Path) -> None:
    assert set(re.findall(r"TRIVET_[A-Z_]+[A-Z]", path.read_text())) <= KNOWN


def test_guide_lists_every_setting_with_its_default() -> None:
    """Plain numbers and names appear in the table as in the code."""
    text = GUIDE.read_text()
    assert not {name for name in KNOWN if f"`{name}`" not in text}
    rows = dict(re.findall(r"^\| `(TRIVET_[A-Z_]+)` \| `?([\w.]+)`? \|", text, re.MULTILINE))
    for name, documented in rows.items():
        value = getattr(Settings(), name.removeprefix("TRIVET_").lower())
        if isinstance(value, bool):
            assert documented == str(value).lower(), name
        elif isinstance(value, int | float):
            assert float(documented) == value, name
        elif documented not in ("none", "ten"):
            assert documented == value, name
    assert len(rows) > 15


def documented_commands() -> Iterator[tuple[str, ...]]:
    """Return every `trivet ...` command that the guide or a file tells somebody to run."""
    for path in FILES:
        for match in re.findall(r"(?:^|[`\s/])trivet ((?:[a-z-]+ ?)+[^`\n|]*)", path.read_text()):
            words = tuple(re.split(r"[\s`;)\\]", match.strip())) if match else ()
            if words and words[0] in root_names():
                yield words
    yield tuple(json.loads(instruction("CMD")))
    yield tuple(container()["args"])


@cache
def root_names() -> list[str]:
    root = root_command()
    return list(root.list_commands(typer.Context(root)))


def test_every_command_and_option_exists() -> None:
    seen, root = set(), root_command()
    context = typer.Context(root, info_name="trivet")
    for words in documented_commands():
        command: Any = root
        rest, name = list(words), ""
        while (
            rest and hasattr(command, "list_commands") and rest[0] in command.list_commands(context)
        ):
            name = rest.pop(0)
            command = command.get_command(context, name)
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word.partition("=")[0] for word in rest if word.startswith("--")} <= options, words
        seen.add(name)
    assert {"serve", "add", "backup", "reindex", "doctor", "rotate-keys"} <= seen


def test_image_starts_the_package_command() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == ["trivet"]
    assert 'trivet = "trivet.cli:main"' in (ROOT / "pyproject.toml").read_text()
    assert instruction("USER") == "10001:10001"
    assert "uid 10001" in instruction("RUN")
    assert "pip uninstall" in instruction("RUN")
    port = json.loads(instruction("CMD"))[-1]
    assert instruction("EXPOSE") == port
    assert f":{port}/healthz" in instruction("HEALTHCHECK")


def test_image_sources_exist_and_reach_the_builder() -> None:
    allowed = {
        line[1:]
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        if line[:1] == "!"
    }
    copied = [
        rest.split()[:-1]
        for name, rest in instructions()
        if name == "COPY" and "--from" not in rest
    ]
    named = {name for names in copied for name in names}
    assert named == allowed
    assert all((ROOT / name).exists() for name in named)


def test_image_environment_is_valid(tmp_path: Path) -> None:
    environment = dict(re.findall(r"([A-Z_]+)=(\S+)", instruction("ENV")))
    settings = load_settings({**environment, "XDG_CONFIG_HOME": str(tmp_path)})
    assert settings.path == "/data/memory.db"
    assert not settings.secrets_keyring
    volumes = json.loads(instruction("VOLUME"))
    assert {environment["HOME"], environment["XDG_CONFIG_HOME"]} <= set(volumes)


def test_compose_is_consistent() -> None:
    value = compose()
    services = value["services"]
    for service in services.values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert (
                (DEPLOY / source).exists() if source.startswith(".") else source in value["volumes"]
            )
    trivet = services["trivet"]
    assert (
        DEPLOY / trivet["build"]["context"] / trivet["build"]["dockerfile"]
    ).resolve() == DEPLOY / "Dockerfile"
    assert trivet["environment"]["TRIVET_PATH"] == "postgresql://trivet@database:5432/trivet"
    assert set(trivet["depends_on"]) < set(services)
    migrate = services["migrate"]
    assert trivet["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert migrate["command"] == ["migrate", "postgresql://trivet_owner@database:5432/trivet"]
    assert "OWNER_PASSWORD" in migrate["environment"]["PGPASSWORD"]
    assert "OWNER_PASSWORD" not in str(trivet["environment"]), (
        "the server must not connect as the owner"
    )
    assert trivet["read_only"]
    assert trivet["ports"] == ["127.0.0.1:7373:7373"], "must not be reachable without TLS"
    assert "ports" not in services["database"]
    assert "pgvector" in services["database"]["image"]


def test_supervisor_waits_longer_than_the_server() -> None:
    longest = Settings().server_shutdown_seconds
    unit = (DEPLOY / "trivet.service").read_text()
    assert int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]) > longest
    assert int(compose()["services"]["trivet"]["stop_grace_period"].removesuffix("s")) > longest
    pod = objects()["Deployment"]["spec"]["template"]["spec"]
    pause = int(container()["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pod["terminationGracePeriodSeconds"] > longest + pause


def test_kubernetes_is_consistent() -> None:
    found = objects()
    assert set(found) == {"Secret", "ConfigMap", "Deployment", "Service", "PodDisruptionBudget"}
    deployment = found["Deployment"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] < deployment["replicas"]
    (first,) = deployment["template"]["spec"]["initContainers"]
    keys, owner = (
        {one["valueFrom"]["secretKeyRef"]["key"] for one in of["env"]}
        for of in (container(), first)
    )
    assert keys | owner == set(found["Secret"]["stringData"])
    assert owner == {"owner-password"}, "the server must not connect as the owner"
    assert first["image"] == container()["image"]
    assert first["args"][0] == "migrate"
    assert {mount["name"] for mount in container()["volumeMounts"]} == {
        volume["name"] for volume in deployment["template"]["spec"]["volumes"]
    }
    assert found["Service"]["spec"]["ports"][0]["targetPort"] == container()["ports"][0]["name"]
    assert container()["ports"][0]["containerPort"] == int(container()["args"][-1])
    load_settings({name: str(value) for name, value in found["ConfigMap"]["data"].items()})


def test_probes_need_no_key() -> None:
    from trivet.serve.http.auth import HEALTH

    probes = {
        name: container()[name]["httpGet"]["path"] for name in container() if name.endswith("Probe")
    }
    assert set(probes.values()) <= HEALTH
    assert probes["livenessProbe"] == "/healthz", "a missing database is no reason to restart"
    assert probes["readinessProbe"] == "/readyz"
    assert not {route.path for verb in VERBS.values() for route in verb.routes} & HEALTH


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """Uses this environment's command in place of the installed one."""
    unit = (DEPLOY / "trivet.service").read_text()
    installed = re.findall(r"^ExecStart=(\S+)", unit, re.MULTILINE)[0]
    ours = Path(sys.executable).with_name("trivet")
    assert ours.exists()
    (tmp_path / "trivet.service").write_text(unit.replace(installed, str(ours)))
    verify = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "trivet.service")]
    result = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_unit_and_guide_use_the_same_paths() -> None:
    unit, guide = (DEPLOY / "trivet.service").read_text(), GUIDE.read_text()
    arguments = shlex.split(re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)[0])
    assert arguments[1:3] == ["serve", "--host"]
    assert arguments[3] == "127.0.0.1", "must not be reachable without TLS"
    assert re.findall(r"python3 -m venv (\S+)", guide)[0] in arguments[0]
    assert re.findall(r"^EnvironmentFile=-(\S+)$", unit, re.MULTILINE)[0] in guide


def run_sql(postgres: PostgresServer, file: str) -> None:
    """Run the file the way the PostgreSQL image does."""
    from support.postgres_server import _BIN

    statement = ["psql", "--no-psqlrc", "--quiet", "--dbname", postgres.url("postgres", "postgres")]
    subprocess.run(
        [str(_BIN / statement[0]), *statement[1:], "--file", str(DEPLOY / file)],
        env={
            **os.environ,
            "DATABASE_PASSWORD": 'it\'s "quoted" \\ and $odd',
            "OWNER_PASSWORD": "it's the owner's",
        },
        check=True,
    )


# Statements that would bypass row-level security.
RLS_BYPASSES = (
    "ALTER TABLE memory DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE memory NO FORCE ROW LEVEL SECURITY",
    "DROP POLICY one_tenant ON memory",
    "CREATE POLICY mine ON memory USING (true)",
    "CREATE VIEW everything AS SELECT * FROM memory",
    "SET ROLE trivet_owner",
    "DROP TABLE memory",
)


def refused(url: str) -> list[str]:
    """Return the statements that the role of this address may not run."""
    found = []
    for statement in RLS_BYPASSES:
        with psycopg.connect(url) as connection:
            try:
                connection.execute(statement)
            except psycopg.errors.InsufficientPrivilege:
                found.append(statement)
            connection.rollback()
    return found


def live(url: str) -> str:
    """Use the store like a server and return doctor's findings about the roles."""
    with Trivet.open(url, background=False) as trivet:
        id = trivet.remember("the heron nests behind Clara's boathouse", tags=["birds"]).id
        trivet.drain()
        assert [hit.id for hit in trivet.recall("heron boathouse").hits] == [id]
        trivet.edit(id, content="the heron has moved")
        trivet.purge(id)
        store = trivet.engine.store
        store.vectors.remove(store.vectors.models()[0])
        findings = trivet.doctor()
    assert [finding for finding in findings if not finding.ok] == []
    return next(finding.detail for finding in findings if finding.check == "roles of the database")


@pytest.fixture(scope="module")
def bare() -> Iterator[PostgresServer]:
    """A separate server, since the files create a role that the other tests already have."""
    server = PostgresServer()
    with server.administrator() as connection:
        connection.execute("DROP ROLE trivet")
    yield server
    server.remove()


def test_database_is_prepared_for_two_plain_roles(
    bare: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sql(bare, "database.sql")
    url, owner = bare.url("trivet"), bare.url("trivet", "trivet_owner")
    with pytest.raises(StoreError, match=r"may not create any\. Run `trivet migrate"):
        Server(url)
    assert CommandLine(monkeypatch).json("migrate", owner)["schema"] == SCHEMA_VERSION
    assert live(url).startswith("two: the tables belong to trivet_owner")
    assert refused(url) == list(RLS_BYPASSES)
    with psycopg.connect(owner) as connection:
        connection.execute("UPDATE schema_version SET version = 8")
    with pytest.raises(
        StoreError, match=r"needs \d+, and the tables belong to the role trivet_owner"
    ):
        Server(url)
    with pytest.raises(StoreError, match="row-level security"):
        Server(bare.url("trivet", "postgres"))
    with bare.administrator() as connection:
        rows = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcreatedb, rolpassword LIKE 'SCRAM-SHA-256$%' "
            "FROM pg_authid WHERE rolname IN ('trivet', 'trivet_owner')"
        ).fetchall()
        assert rows == [(False, False, False, True)] * 2
        connection.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(bare.url("trivet", "stranger"))


def test_one_role_works_but_is_reported_as_weaker(bare: PostgresServer) -> None:
    with bare.administrator() as connection:
        connection.execute("DROP DATABASE IF EXISTS trivet WITH (FORCE)")
        for role in ("trivet", "trivet_owner"):
            connection.execute(f"DROP ROLE IF EXISTS {role}")
        connection.execute("CREATE ROLE trivet LOGIN")
        connection.execute("CREATE DATABASE trivet OWNER trivet")
    with bare.administrator("trivet") as connection:
        connection.execute("CREATE EXTENSION vector")
    url = bare.url("trivet")
    assert live(url).startswith("weaker than two: this one can act as trivet")
    run_sql(bare, "separate-roles.sql")
    assert live(url).startswith("two: the tables belong to trivet_owner")
    assert refused(url) == list(RLS_BYPASSES)
