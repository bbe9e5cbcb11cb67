"""The name of an embedder as one small value: parses from a string and prints back to it.

    bundled                                     the model that comes with Trivet
    stock                                       all-MiniLM-L6-v2, from which that was trained
    none                                        no dense leg
    folder:/path/to/model                       an ONNX or sentence-transformers folder
    openai:MODEL[@BASE_URL][#OPTIONS]           OpenAI, or any server that speaks its API
    voyage:MODEL[@BASE_URL][#OPTIONS]
    cohere:MODEL[@BASE_URL][#OPTIONS]

OPTIONS are `dimensions=N` and `window=N`, joined by `&`.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from trivet.errors import InvalidInput

PLAIN = ("bundled", "stock", "none")
HOSTED = ("openai", "voyage", "cohere")
KNOWN = "bundled, stock, none, folder:/path, openai:MODEL[@URL][#dimensions=N&window=N], voyage:MODEL, cohere:MODEL"
# A model name may hold an @ of its own, so only one that starts a URL divides.
HOSTED_FORM = re.compile(r"(?P<model>[^#]+?)(@(?P<url>https?://[^#]*))?(#(?P<options>.*))?")


@dataclass(frozen=True, slots=True)
class Spec:
    """`name` is the model of a hosted embedder or the path of a folder."""

    kind: str
    name: str = ""
    url: str = ""
    dimensions: int | None = None
    window: int | None = None

    def __str__(self) -> str:
        if self.kind in PLAIN:
            return self.kind
        options = "&".join(f"{key}={value}" for key, value in self._options() if value is not None)
        url, tail = self.url and f"@{self.url}", options and f"#{options}"
        return f"{self.kind}:{self.name}{url}{tail}"

    def _options(self) -> tuple[tuple[str, int | None], ...]:
        return (("dimensions", self.dimensions), ("window", self.window))

    @classmethod
    def parse(cls, text: str) -> "Spec":
        kind, _, rest = text.strip().partition(":")
        if kind in PLAIN and not rest:
            return cls(kind)
        if kind == "folder" and rest:
            return cls(kind, rest)
        if kind in HOSTED and rest:
            return _hosted(kind, rest)
        raise InvalidInput(f"unknown embedder {text!r}; known are: {KNOWN}")


def _hosted(kind: str, rest: str) -> Spec:
    parts = HOSTED_FORM.fullmatch(rest)
    if parts is None:
        raise InvalidInput(f"cannot read the embedder {kind}:{rest}; write {kind}:MODEL[@URL][#dimensions=N&window=N]")
    options = _parse_options(parts["options"] or "")
    url = checked_url(parts["url"] or "")
    return Spec(kind, parts["model"], url, options.get("dimensions"), options.get("window"))


def _parse_options(text: str) -> dict[str, int]:
    options: dict[str, int] = {}
    for option in filter(None, text.split("&")):
        key, _, value = option.partition("=")
        if key not in ("dimensions", "window") or not re.fullmatch("[1-9][0-9]{0,5}", value):
            raise InvalidInput(f"unknown embedder option {option!r}; known are dimensions=N and window=N, N above 0")
        options[key] = int(value)
    return options


def checked_url(url: str, whose: str = "embedder") -> str:
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        acceptable = bool(parts.hostname) and not (parts.username or parts.password or parts.query)
        _ = parts.port
    except ValueError:
        acceptable = False
    if not acceptable:
        # The value is not repeated: what makes it unacceptable may be a password.
        raise InvalidInput(f"the {whose}'s URL must be like http://127.0.0.1:11434/v1: a host, no password, no query")
    return url.rstrip("/")
