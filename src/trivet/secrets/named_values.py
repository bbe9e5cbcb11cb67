"""Secrets recognized by the name before them: `api_key: ...`, "the password is ...", "PIN 4821"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.secrets.value_shape import (
    LazyPattern,
    is_password,
    is_placeholder,
    is_token,
    is_weak_password,
)

AWS_SECRET_KEY_LENGTH = 40
_PASSWORD_NAMES = (
    r"pass(?:word|wort|wd|phrase|code)?|pwd|psk|contrase(?:ñ|n)a|kennwort|mot de passe"
)
_TOKEN = (
    r"api[-_ ]?key|access[-_ ]?key|secret[-_ ]?key|auth[-_ ]?key|signing[-_ ]?key|encryption[-_ ]?key|master[-_ ]?key|"  # noqa: E501
    r"private[-_ ]?key|account[-_ ]?key|license[-_ ]?key|client[-_ ]?secret|secret|token|credential|auth"  # noqa: E501
)
# About a secret, without holding one: token_count, password_file, secret_name.
_NOT_A_SECRET_SUFFIX = LazyPattern(
    r"(?:id|ids|url|uri|name|path|file|dir|type|count|limit|budget|length|len|size|ttl|expiry|expires?|expires_in|version|"
    r"hash|policy|manager|field|class|provider|endpoint|header|hint|prompt|template|ref|arn|alias|usage|format|"
    r"rotation|algorithm|rounds|encoder|strategy|method|mode|flow|store|backend|plugin|error|check|regex|pattern|label|at|per_\w{1,30})$"
)
# A separate word, or the capitalized part of dbPassword; bounded repeats keep every text fast.
_EDGE = r"(?:(?<![A-Za-z])|(?<=(?-i:[a-z]))(?=(?-i:[A-Z]))|(?=password|passwd|secret|token|apikey))"
_REST = r"(?P<rest>s?[-_.][\w.-]{0,30}?|s?(?-i:[A-Z])\w{0,30}?|s|\d{1,2})?"
_JOIN = (
    r"[\"'`]?\]?(?P<join>\s{0,3}(?::=|=>|==?|:)\s{0,3}|\s{1,3}(?:is|was|lautet|ist|es|est|to|are)(?:\s+now)?:?\s{1,3}|"
    r"\s?,\s?(?=[\"'])|\s(?=[\"'`]))"
)
_VALUE = r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{4,400})(?P=quote)|(?P<bare>[^\s\"'`,;<>|)\]}]{4,400}))"  # noqa: E501


def _compiled(words: str) -> LazyPattern:
    return LazyPattern(rf"{_EDGE}(?:{words}){_REST}{_JOIN}{_VALUE}", re.IGNORECASE)


# The expensive patterns are tried only here.
_NEAR = LazyPattern(
    r"pass|pwd|psk|contrase|kennwort|mot de|api|a(?:cces|uth|ccount)|s(?:ecret|igning)|encr|master|priv|licen|client|"  # noqa: E501
    r"token|cred",
    re.IGNORECASE,
)
# For ASCII texts, `in` takes a twentieth of the time.
_STARTS = (
    "mot de",
    *"pass pwd psk contrase kennwort api acces auth account secret signing encr master priv licen client".split(),  # noqa: E501
    *"token cred".split(),
)
_PASSWORDS = _compiled(_PASSWORD_NAMES)
_TOKENS = _compiled(_TOKEN)
_PROSE = LazyPattern(r"^\s+(?:is|was|lautet|ist|es|est|to|are)", re.IGNORECASE)


def assigned_secrets(text: str) -> Iterator[tuple[str, int, int]]:
    lower = text.lower()
    if text.isascii() and not any(start in lower for start in _STARTS):
        return
    end = 0
    for near in _NEAR().finditer(text):
        if near.start() < end:
            continue
        if (match := _PASSWORDS().match(text, near.start())) and (
            span := _password(match)
        ) is not None:
            yield "password", *span
            end = span[1]
        elif (match := _TOKENS().match(text, near.start())) and (span := _token(match)) is not None:
            yield _kind(match), *span
            end = span[1]


def _password(match: re.Match[str]) -> tuple[int, int] | None:
    value, start = _value(match)
    if _is_verb(match) or _is_about_a_secret(match) or is_placeholder(value):
        return None
    firm = match["quoted"] is not None or "=" in match["join"]
    return (
        (start, start + len(value)) if (is_weak_password if firm else is_password)(value) else None
    )


def _is_verb(match: re.Match[str]) -> bool:
    """Match the verb in "Pass `statement_cache_size=0`"."""
    return (
        not match["join"].strip()
        and match.string[match.start() : match.start("join")].lower() == "pass"
    )


def _token(match: re.Match[str]) -> tuple[int, int] | None:
    value, start = _value(match)
    if _is_about_a_secret(match) or is_placeholder(value) or not is_token(value):
        return None
    return start, start + len(value)


def _kind(match: re.Match[str]) -> str:
    name = match.string[max(0, match.start() - len("aws_")) : match.start("join")].lower()
    of_amazon = "aws" in name or "secretaccesskey" in name.replace("_", "")
    return (
        "aws-secret-key"
        if of_amazon and len(_value(match)[0]) == AWS_SECRET_KEY_LENGTH
        else "token"
    )


def _value(match: re.Match[str]) -> tuple[str, int]:
    if match["quoted"] is not None:
        return match["quoted"], match.start("quoted")
    value = match["bare"]
    stripped = value.rstrip(".:?") if _PROSE().match(match["join"]) or value[-1:] in ".:" else value
    return stripped.rstrip("\\"), match.start("bare")


def _is_about_a_secret(match: re.Match[str]) -> bool:
    rest = (match["rest"] or "").lower().strip("-_.")
    return bool(rest and _NOT_A_SECRET_SUFFIX().search(rest))


MOST_CHARACTERS = 120
MOST_WORDS = 14
# Maximum distance from "code" to a word that says what it opens.
NEAR_CODE = 60

# Every text with a matching name contains one of these.
_MAY_NAME_PASSWORD = (
    "mot de passe",
    *"passw passp passc passo pw kennwort contrase senha clave wachtwoord senord adgangskode parola".split(),  # noqa: E501
    *"hasl hasł heslo salasana пароль".split(),
)
_MAY_NAME_WIFI = ("wifi", "wi-fi", "wlan", "wpa", "hotspot", "router", "ssid")
_MAY_NAME_PAIR = ("login", "log-in", "cred", "zugangsdaten", "benutzer", "user")
_MAY_NAME_CODE = tuple(
    "pin puk code codic digo combi kombi geheimzahl zahlenschloss keypad box".split()
)
_PASSWORD_WORD = LazyPattern(
    r"(?<![^\W_])(?:pass(?:word|wort|phrase|code|wd)|pwd?|kennwort|mot de passe|contrase(?:ñ|n)a|senha|clave|"  # noqa: E501
    r"wachtwoord|lösenord|losenord|adgangskode|passord|parola|has[lł]o|heslo|salasana|пароль)(?![^\W_])",
    re.IGNORECASE,
)
# "Password policy", "password manager": about passwords, without a value.
_PASSWORD_TOPIC = LazyPattern(
    r"[\s-]*(?:polic|manager|reset|hash|length|field|rule|prompt|form|file|check|strength|rotation|generator|protect|"
    r"richtlinie|through|on to|over)",
    re.IGNORECASE,
)
_CODE = LazyPattern(
    r"(?<![^\W_])(?:pin|puk|geheimzahl|passcode|"
    r"(?P<open>[^\W\d_]{0,20}code|codice|c[oó]digo|combination|combo|kombination|zahlenschloss|keypad|key ?box))"  # noqa: E501
    r"(?:s|[ -](?:code|number|nummer))?(?![^\W_])",
    re.IGNORECASE,
)
# "Code" alone may be that of an error, a country or a review.
_OPENED = LazyPattern(
    r"door|gate|alarm|lock|safe\b|keypad|key ?box|garage|entr(?:y|ance)|access|voicemail|phone|tablet|ipad|laptop|"  # noqa: E501
    r"screen|\bsim\b|vault|elevator|\blift\b|gym|cellar|tür|\btor|eingang|schloss|schlüssel|schlie(?:ß|ss)fach|"
    r"spind|tresor|zugangs|sicherheits|porte|puerta|coffre|portail|cassaforte|cancello|port(?:a|one)\b|allarme|alarma",
    re.IGNORECASE,
)
_NOT_OPENING = LazyPattern(
    r"(?:error|exit|status|return|response|reason|zip|postal|post|country|area|source|dress|discount|promo|coupon|"
    r"course|order|item|part|model|serial|service|tracking|voucher|gift|referral|sort|http|colou?r|bar|qr|swift|bank|"
    r"tax|language|event|fault|trouble|product|airport|booking|stock|article|flight|fehler|bestell|artikel|vor)[ -]?$",  # noqa: E501
    re.IGNORECASE,
)
_LINKS = frozenset(
    "is was are to = -> => → reads ist war auf lautet lautete heißt heisst est es era è é e sera será är er jest je "  # noqa: E501
    "это".split()
)
# A version is pinned *to* a number.
_SAYS = _LINKS - {"to"}
_BETWEEN = frozenset(
    "now still again currently always just simply actually jetzt nun noch wieder immer weiterhin derzeit aktuell "  # noqa: E501
    "ahora siempre todavía maintenant toujours sempre ancora adesso agora nog steeds".split()
)
_WORD = LazyPattern(r"\S+")
_DIGITS = LazyPattern(r"(?:\d{4,8}|\d{1,2}(?:-\d{1,2}){2,3})[#*]?")
_AS = LazyPattern(r"(?<!\S)(\S{6,64}) (?:as|als|como|comme) (?:\w{1,8} ){0,2}$", re.IGNORECASE)
# "login: admin / ...", "credentials are bob / ...".
_PAIR = LazyPattern(
    r"(?<![^\W_])(?:log-?in|credentials?|creds|zugangsdaten|benutzer(?:name)?|user(?:name)?)(?: (?:is|are|ist|sind))?"  # noqa: E501
    r"[ \t]{0,3}[: =][ \t]{0,3}[\w.@+-]{1,60}[ \t]{1,3}[/|][ \t]{1,3}(?P<value>\S{6,100})",
    re.IGNORECASE,
)
# On the same line as the network's name.
_WIFI_KEY = LazyPattern(
    r"(?<![^\W_])(?:wi-?fi|wlan|wpa[23]?|hotspot|router|ssid)(?![^\W_])[^\n]{0,60}?"
    r"(?<![^\W_])(?:key|schlüssel|cl[ée]|chiave|code)(?![^\W_])",
    re.IGNORECASE,
)
_OPENING, _CLOSING = "\"'`“‘«(<", "\"'`”’».,;:!?)>"


def prose_secrets(text: str) -> Iterator[tuple[str, int, int]]:
    lower = text.lower()
    wifi = _WIFI_KEY().finditer(text) if any(start in lower for start in _MAY_NAME_WIFI) else ()
    for name in wifi:
        if (span := _password_after(text, name)) is not None:
            yield "password", *span
    for name in (
        _PASSWORD_WORD().finditer(text)
        if any(start in lower for start in _MAY_NAME_PASSWORD)
        else ()
    ):
        span = _value_before(text, name) or _password_after(text, name)
        if span is not None:
            yield "password", *span
    for pair in _PAIR().finditer(text) if any(start in lower for start in _MAY_NAME_PAIR) else ():
        if _is_prose_password(pair["value"].rstrip(".,;")):
            yield (
                "password",
                pair.start("value"),
                pair.start("value") + len(pair["value"].rstrip(".,;")),
            )
    for name in _CODE().finditer(text) if any(start in lower for start in _MAY_NAME_CODE) else ():
        if (name["open"] is None or _is_access_code(text, name)) and (
            span := _code_after(text, name)
        ) is not None:
            yield "pin", *span


def _password_after(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    if _PASSWORD_TOPIC().match(text, name.end()):
        return None
    return next(
        (
            span
            for span, _ in _values_after(text, name.end())
            if _is_prose_password(text[slice(*span)])
        ),
        None,
    )


def _code_after(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    """After lower-case `pin`, require a verb: pin 4021 belongs to a chip."""
    if name[0] in ("pin", "pins") and text[name.end() : name.end() + 1] != ":":
        return next(
            (
                span
                for span, link in _values_after(text, name.end())
                if link in _SAYS and _is_code(text, span)
            ),
            None,
        )
    return next((span for span, _ in _values_after(text, name.end()) if _is_code(text, span)), None)


def _is_code(text: str, span: tuple[int, int]) -> bool:
    return _DIGITS().fullmatch(text, *span) is not None


def _values_after(text: str, end: int) -> Iterator[tuple[tuple[int, int], str]]:
    stop = min(len(text), end + MOST_CHARACTERS)
    line_end = -1 if text.startswith(":\n", end) else text.find("\n", end, stop)
    link: str | None = ""  # directly after the name counts
    for number, word in enumerate(_WORD().finditer(text, end, stop if line_end < 0 else line_end)):
        if number >= MOST_WORDS:
            return
        bare = word[0].strip(_OPENING + _CLOSING).lower()
        if link is not None and bare and word.start() > end:
            yield _stripped(text, word), link
        if word[0].endswith(":"):
            link = ":"
        elif bare in _LINKS or word[0].lower() in _LINKS:
            link = bare or word[0]
        elif bare and bare not in _BETWEEN:
            link = None


def _value_before(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    """Match "use ... as the password"."""
    start = max(0, name.start() - NEAR_CODE)
    before = _AS().search(text[start : name.start()])
    if before is None or not _is_prose_password(before[1].strip(_OPENING + _CLOSING)):
        return None
    return start + before.start(1), start + before.end(1)


def _is_access_code(text: str, name: re.Match[str]) -> bool:
    if _NOT_OPENING().search(
        text[max(0, name.start() - 12) : name.start()]
    ) or _NOT_OPENING().search(name[0][:-4]):
        return False
    start = max(0, name.start() - NEAR_CODE)
    start = max(start, text.rfind("\n", start, name.start()))
    return _OPENED().search(text, start, name.end() + NEAR_CODE) is not None


def _stripped(text: str, word: re.Match[str]) -> tuple[int, int]:
    """Keep punctuation that often ends a password."""
    value = word[0]
    start = word.start() + len(value) - len(value.lstrip(_OPENING))
    stop = word.end() - len(value) + len(value.rstrip(".,;:\"'`”’»)>"))
    return start, max(start, stop)


def _is_prose_password(value: str) -> bool:
    telling = any(map(str.isdigit, value)) or any(mark in value for mark in "!#$%&*+?@^~")
    plain = not value.startswith(("--", ":")) and not any(mark in value for mark in '=(){}[]`"')
    return telling and plain and is_password(value) and not is_placeholder(value)
