"""The folder that an agent works in: the client's first root, or the folder that the server was started in."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError

# A client that names roots and does not answer is done without.
PATIENCE_SECONDS = 2.0


async def client_folder(session: ServerSession) -> Path:
    """Asked before each search: a person may open another folder in the same conversation."""
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None or not session.can_send_request:
        return Path.cwd()
    found = types.ListRootsResult(roots=[])
    with anyio.move_on_after(PATIENCE_SECONDS):
        try:
            found = await session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        except MCPError:  # it says that it has roots, and refuses to name them
            return Path.cwd()
    folders = [folder for root in found.roots if (folder := _folder(str(root.uri))) is not None]
    return folders[0] if folders else Path.cwd()


def _folder(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    folder = Path(unquote(parts.path))
    return folder if folder.is_dir() else None
