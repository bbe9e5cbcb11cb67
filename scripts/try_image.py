"""Run the steps of deploy/Dockerfile in a chroot and serve from it, for machines without Docker.

sudo python3 scripts/try_image.py                       # in a temporary folder
sudo python3 scripts/try_image.py --keep /var/tmp/image

It takes root, debootstrap, a Debian mirror, PyPI, some minutes and 2 GB. Debian's Python 3.11
replaces the base image python:3.11-slim-bookworm, as `python` and `pip` in /usr/local. Every RUN
and COPY is done as in the Dockerfile. The server then runs as its user, with its environment and
command, without a network, on a file system that is read-only except for the volumes and /tmp. It
must answer the health check and a client, and end on the signal.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
MIRROR = "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,ca-certificates"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Settings pip needs to reach PyPI from this machine.
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL")
# Metadata of the image; nothing happens for these at build time.
DECLARED = ("EXPOSE", "VOLUME", "STOPSIGNAL", "ENTRYPOINT", "CMD", "HEALTHCHECK", "USER")

# $1 is the image's root, $2 its user, $3 the stop signal; then the health check, `--` and the
# command.
SERVED = r"""
set -eu
root=$1 user=$2 signal=$3
shift 3
check=""
while [ "$1" != -- ]; do check="$check '$(printf %s "$1" | sed "s/'/'\\\\''/g")'"; shift; done
shift
ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
for name in data keys tmp; do mount -t tmpfs -o "mode=0700,uid=${user%:*},gid=${user#*:}" tmpfs "$root/$name"; done
inside() { chroot --userspec="$user" "$root" "$@"; }
if inside touch /opt/trivet/mark 2> /dev/null; then echo "The image can be written to." >&2; exit 1; fi
(exec chroot --userspec="$user" "$root" "$@") & serving=$!
trap 'kill $serving 2> /dev/null || true' EXIT
tries=0
until eval inside $check 2> /dev/null; do
    tries=$((tries + 1))
    if [ $tries -gt 90 ] || ! kill -0 $serving 2> /dev/null; then echo "It does not become healthy." >&2; exit 1; fi
    sleep 1
done
echo "healthy"
inside trivet user add ana --role writer
inside python -c "$CLIENT" "$(inside trivet --json key add ana)"
kill -"$signal" $serving
wait $serving && ended=0 || ended=$?
echo "ended by $signal with status $ended"
exit $ended
"""
CLIENT = """
import json, sys, urllib.request
key = json.loads(sys.argv[1])["key"]
def asked(path, body):
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    request = urllib.request.Request("http://127.0.0.1:7373" + path, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=60))
asked("/v1/memories", {"content": "The staging database listens on port 6543."})
answer = asked("/v1/recall", {"query": "which port is staging on?"})
legs = {leg["leg"]: leg["answered"] for leg in answer["health"]["legs"]}
assert "6543" in answer["hits"][0]["content"] and all(legs.values()), answer
print("stored and recalled over HTTP;", ", ".join(legs), "answer")
"""


@dataclass
class Stage:
    """A FROM: its own root, where commands run, and its metadata."""

    root: Path
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    declared: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--keep",
        type=Path,
        help="the folder for the roots, which stay there; a temporary one if none",
    )
    parser.add_argument("--mirror", default=MIRROR, help=f"of Debian; {MIRROR} if none")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise SystemExit("It takes root, and debootstrap: apt-get install debootstrap")
    with tempfile.TemporaryDirectory(prefix="trivet-image-", ignore_cleanup_errors=True) as scratch:
        folder = (arguments.keep or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        image = built(folder, arguments.mirror)
        size = told(["du", "--summarize", "--block-size=1M", str(image.root / "opt")]).split()[0]
        print(f"/opt/trivet has {size} MB", flush=True)
        serve(image)


def instructions() -> Iterator[tuple[str, str]]:
    """Yield each instruction with its argument, continued lines joined and arguments filled in."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    given: dict[str, str] = {}
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "ARG":
            key, _, value = rest.partition("=")
            given[key] = value
        elif name:
            filled = (
                rest
                if name == "RUN"
                else re.sub(r"\$\{(\w+)\}", lambda found: given[found[1]], rest)
            )
            yield name, filled.strip()


def built(folder: Path, mirror: str) -> Stage:
    stages: dict[str, Stage] = {}
    stage = None
    for name, rest in instructions():
        print(f"{name} {rest}", flush=True)
        if name == "FROM":
            image, _, called = rest.partition(" AS ")
            called = called or "image"
            stage = stages[called] = Stage(begun(folder, image, called, mirror))
        else:
            assert stage is not None, "a Dockerfile begins with FROM"
            perform(stage, name, rest, stages)
    assert stage is not None, "a Dockerfile has a FROM"
    return stage


def begun(folder: Path, image: str, called: str, mirror: str) -> Path:
    """Copy the base, with Python where the Python image has it."""
    found = re.fullmatch(r"python:(\d+\.\d+)-slim-(\w+)", image)
    if found is None:
        raise SystemExit(
            f"{image}: only python:VERSION-slim-DEBIAN can be made of Debian's own packages."
        )
    base = folder / "base"
    if not base.exists():
        half = folder / "base.half"
        told(
            [
                "debootstrap",
                "--variant=minbase",
                f"--include={PACKAGES}",
                found[2],
                str(half),
                mirror,
            ]
        )
        there = told(["chroot", str(half), "python3", "--version"]).split()[1]
        if not there.startswith(f"{found[1]}."):
            raise SystemExit(f"The Debian {found[2]} has Python {there}, and the image {found[1]}.")
        told(["chroot", str(half), "python3", "-m", "venv", "/usr/local"])
        shutil.copy(
            f"/{CERTIFICATES}", half / CERTIFICATES
        )  # This machine's certificates: a proxy may have its own.
        half.rename(base)
    shutil.copy("/etc/resolv.conf", base / "etc" / "resolv.conf")
    target = folder / called
    told(["rm", "--recursive", "--force", str(target)])
    told(["cp", "--archive", "--reflink=auto", str(base), str(target)])
    return target


def perform(stage: Stage, name: str, rest: str, stages: Mapping[str, Stage]) -> None:
    if name == "RUN":
        run(stage, rest)
    elif name == "COPY":
        copy(stage, rest.split(), stages)
    elif name == "WORKDIR":
        stage.folder = rest
        (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
    elif name == "ENV":
        for one in shlex.split(rest):
            key, value = one.split("=", 1)
            stage.environment[key] = value.replace("$PATH", stage.environment["PATH"])
    elif name in DECLARED:
        stage.declared[name] = rest
    else:
        raise SystemExit(f"{name}: this script has not learnt that instruction yet.")


def run(stage: Stage, command: str) -> None:
    passed_on = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
    environment = {
        **stage.environment,
        "PIP_CERT": f"/{CERTIFICATES}",
        "HOME": "/root",
        **passed_on,
    }
    inside = [
        "chroot",
        str(stage.root),
        "/bin/sh",
        "-ec",
        f"cd {shlex.quote(stage.folder)}\n{command}",
    ]
    subprocess.run(inside, env=environment, check=True)


def copy(stage: Stage, words: list[str], stages: Mapping[str, Stage]) -> None:
    """Copy from the build context or from an earlier stage."""
    *sources, target = (word for word in words if not word.startswith("--"))
    into = stage.root / os.path.normpath(Path(stage.folder, target)).lstrip("/")
    if words[0].startswith("--from="):
        told(
            [
                "cp",
                "--archive",
                "--no-target-directory",
                str(stages[words[0][7:]].root / sources[0][1:]),
                str(into),
            ]
        )
        return
    sent, left_out = context()
    for source in sources:
        if source not in sent:
            raise SystemExit(f"{source}: Dockerfile.dockerignore does not send it to the builder.")
        if (ROOT / source).is_dir():
            shutil.copytree(
                ROOT / source, into, ignore=shutil.ignore_patterns(*left_out), dirs_exist_ok=True
            )
        else:
            shutil.copy(ROOT / source, into)


def context() -> tuple[list[str], list[str]]:
    """Return the build context, and the names excluded at any depth."""
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").split("\n")
    return [line[1:] for line in lines if line[:1] == "!"], [
        line[3:] for line in lines if line[:3] == "**/"
    ]


def serve(image: Stage) -> None:
    declared = image.declared
    check = json.loads(declared["HEALTHCHECK"].partition(" CMD ")[2])
    command = [*json.loads(declared["ENTRYPOINT"]), *json.loads(declared["CMD"])]
    signal = declared["STOPSIGNAL"].removeprefix("SIG")
    words = [str(image.root), declared["USER"], signal, *check, "--", *command]
    shell = ["unshare", "--mount", "--net", "/bin/sh", "-c", SERVED, "serve", *words]
    ended = subprocess.run(shell, env={**image.environment, "CLIENT": CLIENT}, check=False)
    if ended.returncode:
        raise SystemExit("The image does not serve as it should; see above.")


def told(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout[-4000:] + done.stderr[-4000:])
        raise SystemExit(f"It failed: {shlex.join(command)}")
    return done.stdout


if __name__ == "__main__":
    main()
