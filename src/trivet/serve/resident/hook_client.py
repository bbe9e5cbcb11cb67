"""Script of an agent's hook, which passes its input on to the resident process.

It runs before every prompt, so it loads only modules built into Python. On any failure it stays
silent and exits with 0: a failing hook may block the prompt.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Mapping
    from types import FrameType

    Environment = Mapping[bytes, bytes]

# Windows lacks Unix sockets; hooks work alone there.
if sys.platform != "win32":
    import _signal  # type: ignore[import-not-found]  # the same as signal, without its lists of names
    import _socket
    import posix

PROTOCOL = b"1"
LENGTH_BYTES = 4
# A longer prompt is not a question to a memory.
MAX_MESSAGE_BYTES = 32 * 2**20
CHUNK_BYTES = 2**20
# Longest path of a socket that every system supports.
MAX_SOCKET_PATH = 100
TIME_LIMIT_MS = 3_000
# The agent's program does not wait at these moments.
HAND_OFF_EVENTS = ("end", "session-end")
HAND_OFF_SECONDS = 0.5
# A longer log is renamed; one old log is kept.
MAX_FAILURE_LOG_BYTES = 64 * 1024


class ResidentUnavailable(Exception):
    pass


class ConnectionLost(ResidentUnavailable):
    """A disconnect before the answer; the process may have acted."""


def main(arguments: list[str]) -> int:
    environment: Environment = {}
    try:
        if sys.platform == "win32":
            _print(_run_locally(arguments, sys.stdin.buffer.read(), "not on this system", []))
            return 0
        environment = posix.environ
        child: list[int] = []
        _limit_time(environment, arguments, child)
        given = _read(lambda: posix.read(0, CHUNK_BYTES))
        _print(_answer(environment, arguments, given, child))
    except Exception as error:  # noqa: BLE001 - a failing hook must not block the prompt
        log_failure(environment, arguments, f"{type(error).__name__}: {error}")
    return 0


def _answer(
    environment: Environment, arguments: list[str], given: bytes, child: list[int]
) -> bytes:
    if arguments[:1] and arguments[0] in HAND_OFF_EVENTS:
        return _hand_off(environment, arguments, given)
    try:
        return hook(environment, arguments, given)
    except ResidentUnavailable as gone:
        return _run_locally(arguments, given, str(gone), child)


def _hand_off(environment: Environment, arguments: list[str], given: bytes) -> bytes:
    try:
        return hook(environment, arguments, given, HAND_OFF_SECONDS)
    except ResidentUnavailable:
        process = _spawn_local(arguments)
        if process.stdin is not None:
            process.stdin.write(given)
            process.stdin.close()
        return b""


def hook(
    environment: Environment, arguments: list[str], given: bytes, seconds: float | None = None
) -> bytes:
    variables = b"\0".join(name + b"=" + value for name, value in environment.items())
    typed = b"\0".join(argument.encode(errors="surrogateescape") for argument in arguments)
    message = (b"hook", PROTOCOL, variables, posix.getcwdb(), typed, given)
    status, answer, *_ = ask(environment, message, seconds)
    if status != b"ok":
        raise ResidentUnavailable(answer.decode(errors="replace"))
    return answer


def ask(
    environment: Environment, parts: Iterable[bytes], seconds: float | None = None
) -> list[bytes]:
    connection = connect(socket_path(environment), seconds)
    try:
        connection.sendall(pack(parts))
        return receive(connection)
    except OSError as error:
        raise ConnectionLost(f"it disconnected ({error})") from None
    finally:
        connection.close()


def socket_path(environment: Environment) -> bytes:
    """Return this user's socket, in a folder closed to others."""
    runtime = environment.get(b"XDG_RUNTIME_DIR")
    folder = runtime + b"/trivet" if runtime else b"/tmp/trivet-%d" % posix.getuid()
    return folder + b"/resident.sock"


def connect(path: bytes, seconds: float | None = None) -> _socket.socket:
    _check_folder(path.rpartition(b"/")[0])
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(path)
        if peer_user(connection) not in (None, posix.getuid()):
            raise ResidentUnavailable("the socket belongs to another user")
    except OSError as error:
        connection.close()
        raise ResidentUnavailable(f"it is not running ({error})") from None
    except ResidentUnavailable:
        connection.close()
        raise
    return connection


def peer_user(connection: _socket.socket) -> int | None:
    """Return the user at the other end, or None where the system does not tell."""
    if not hasattr(_socket, "SO_PEERCRED"):
        return None
    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def pack(parts: Iterable[bytes]) -> bytes:
    """Prefix each part, and the whole message, with its length."""
    body = b"".join(len(part).to_bytes(LENGTH_BYTES, "big") + part for part in parts)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def receive(connection: _socket.socket) -> list[bytes]:
    length = int.from_bytes(_exactly(connection, LENGTH_BYTES), "big")
    if length > MAX_MESSAGE_BYTES:
        raise ResidentUnavailable("the message is too long")
    body, parts, position = _exactly(connection, length), [], 0
    while position < length:
        start = position + LENGTH_BYTES
        position = start + int.from_bytes(body[position:start], "big")
        parts.append(body[start:position])
    return parts


def log_failure(environment: Environment, arguments: list[str], reason: str) -> None:
    """Log a failure for `trivet status`; give up silently if that fails."""
    if sys.platform == "win32":
        return
    folder = _data_folder(environment) + b"/hooks"
    row = f"{int(time.time())} {' '.join(arguments[:1])} {' '.join(reason.split())[:300]}\n"
    try:
        _make_folders(folder)
        file = folder + b"/failures.log"
        handle = posix.open(file, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
        try:
            posix.write(handle, row.encode(errors="replace"))
            if posix.fstat(handle).st_size > MAX_FAILURE_LOG_BYTES:
                posix.rename(file, file + b".1")
        finally:
            posix.close(handle)
    except OSError:
        return


def _limit_time(environment: Environment, arguments: list[str], child: list[int]) -> None:
    milliseconds = _time_limit_ms(environment)

    def give_up(number: int, frame: FrameType | None) -> None:
        for process in child:
            _kill(process)
        log_failure(environment, arguments, f"no answer within {milliseconds} ms")
        posix._exit(0)

    _signal.signal(_signal.SIGALRM, give_up)
    _signal.setitimer(_signal.ITIMER_REAL, milliseconds / 1000)


def _kill(group: int) -> None:
    try:
        posix.killpg(group, _signal.SIGKILL)
    except OSError:  # it has already ended
        return


def _time_limit_ms(environment: Environment) -> int:
    """Read one setting; parsing the whole file would take as long as the hook."""
    name = b"hook_time_limit_ms"
    if given := environment.get(b"TRIVET_" + name.upper()):
        return _whole(given) or TIME_LIMIT_MS
    for row in _settings_text(environment).split(b"\n"):
        key, _, value = row.partition(b"=")
        if key.strip() == name:
            return _whole(value.partition(b"#")[0].replace(b"_", b"")) or TIME_LIMIT_MS
    return TIME_LIMIT_MS


def _whole(text: bytes) -> int:
    return int(text) if text.strip().isdigit() else 0


def _settings_text(environment: Environment) -> bytes:
    base = environment.get(b"XDG_CONFIG_HOME") or environment.get(b"HOME", b"") + b"/.config"
    try:
        handle = posix.open(
            environment.get(b"TRIVET_CONFIG") or base + b"/trivet/trivet.toml", posix.O_RDONLY
        )
    except OSError:
        return b""
    try:
        return posix.read(handle, CHUNK_BYTES)
    except OSError:
        return b""
    finally:
        posix.close(handle)


def _data_folder(environment: Environment) -> bytes:
    return (
        environment.get(b"XDG_DATA_HOME") or environment.get(b"HOME", b"") + b"/.local/share"
    ) + b"/trivet"


def _check_folder(folder: bytes) -> None:
    try:
        status = posix.lstat(folder)
    except OSError:
        raise ResidentUnavailable("it is not running") from None
    if (
        status.st_uid != posix.getuid()
        or status.st_mode & 0o077
        or (status.st_mode & 0o170000) != 0o040000
    ):
        raise ResidentUnavailable("other users may enter the folder of its socket")


def _make_folders(folder: bytes) -> None:
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_folders(folder.rpartition(b"/")[0])
        posix.mkdir(folder, 0o700)


def _read(read: Callable[[], bytes]) -> bytes:
    pieces, length = [], 0
    while piece := read():
        pieces.append(piece)
        length += len(piece)
        if length > MAX_MESSAGE_BYTES - CHUNK_BYTES:
            raise ValueError("the input is too long")
    return b"".join(pieces)


def _exactly(connection: _socket.socket, length: int) -> bytes:
    pieces, left = [], length
    while left:
        piece = connection.recv(min(left, CHUNK_BYTES))
        if not piece:
            raise ConnectionLost("it disconnected")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _print(answer: bytes) -> None:
    """Bypass Python's stream, which complains at exit when the reader has gone."""
    if sys.platform == "win32":
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
        return
    while answer:
        answer = answer[posix.write(1, answer) :]


def _run_locally(arguments: list[str], given: bytes, reason: str, child: list[int]) -> bytes:
    process = _spawn_local(arguments)
    child.append(process.pid)
    answer, _ = process.communicate(given)
    if process.returncode:
        raise OSError(
            f"the local process ended with {process.returncode}; the resident process: {reason}"
        )
    return answer


def _spawn_local(arguments: list[str]) -> subprocess.Popen[bytes]:
    import subprocess

    # -P: the untrusted working folder must not shadow our package.
    command = [sys.executable, "-P", "-m", "trivet.agents.hooks.answer", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
