"""The page for people: files of our own from the package, and nothing from anywhere else. It works over the API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet.serve.http.endpoint import Address, ServerContext
from trivet.serve.http.sign_in import Links, sign_in_handler

# Scripts and styles from this server alone, none in the text; strings can never become markup (trusted types).
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
SIGN_IN = "/page/sign-in"
PREFIX = "/page/"


class PageFile(msgspec.Struct, frozen=True):
    body: bytes
    kind: str
    etag: str


def page_files() -> dict[str, PageFile]:
    """Each file of the page by its address."""
    root = files("trivet") / "page"
    found = {PREFIX + name: _read(file) for name, file in _files(root, "") if name.rpartition(".")[2] in TYPES}
    found["/"] = found.pop(PREFIX + "index.html")
    return found


def page_routes(context: ServerContext, links: Links) -> list[Address]:
    served = [_address(path, file) for path, file in page_files().items()]
    return [Address(SIGN_IN, {"POST": sign_in_handler(context, links)}), *served]


def _files(folder: Traversable, above: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for one in folder.iterdir():
        found += _files(one, f"{above}{one.name}/") if one.is_dir() else [(above + one.name, one)]
    return found


def _read(file: Traversable) -> PageFile:
    body = file.read_bytes()
    return PageFile(body, TYPES[file.name.rpartition(".")[2]], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _address(path: str, file: PageFile) -> Address:
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache", "ETag": file.etag}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers={**headers, "Content-Type": file.kind})

    return Address(path, {"GET": answer})
