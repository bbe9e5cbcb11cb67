"""Passwords and PINs as people tell them: "the password in the office is ...", "Passwort vom WLAN: ...", "PIN 4821".

Words may stand between the name and its value, so the value is looked for in the few words after the name: behind a
verb such as "is", behind a colon, or at once. It counts only if it looks like a password or a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.secrets.detect.value_shape import LazyPattern, is_password, is_placeholder

# How far behind its name a value is looked for.
MOST_CHARACTERS = 120
MOST_WORDS = 14
# How far around "code" a word must stand that says what it opens.
NEAR_CODE = 60

# One of these stands in every text in which a name is found; most texts hold none of them.
_MAY_NAME_PASSWORD = (
    "mot de passe",
    *"passw passp passc passo pw kennwort contrase senha clave wachtwoord senord adgangskode parola".split(),
    *"hasl hasł heslo salasana пароль".split(),
)
_MAY_NAME_WIFI = ("wifi", "wi-fi", "wlan", "wpa", "hotspot", "router", "ssid")
_MAY_NAME_PAIR = ("login", "log-in", "cred", "zugangsdaten", "benutzer", "user")
_MAY_NAME_CODE = tuple("pin puk code codic digo combi kombi geheimzahl zahlenschloss keypad box".split())
_PASSWORD = LazyPattern(
    r"(?<![^\W_])(?:pass(?:word|wort|phrase|code|wd)|pwd?|kennwort|mot de passe|contrase(?:ñ|n)a|senha|clave|"
    r"wachtwoord|lösenord|losenord|adgangskode|passord|parola|has[lł]o|heslo|salasana|пароль)(?![^\W_])",
    re.IGNORECASE,
)
# "Password policy", "password manager": it speaks of passwords and tells none.
_ABOUT = LazyPattern(
    r"[\s-]*(?:polic|manager|reset|hash|length|field|rule|prompt|form|file|check|strength|rotation|generator|protect|"
    r"richtlinie|through|on to|over)",
    re.IGNORECASE,
)
_CODE = LazyPattern(
    r"(?<![^\W_])(?:pin|puk|geheimzahl|passcode|"
    r"(?P<open>[^\W\d_]{0,20}code|codice|c[oó]digo|combination|combo|kombination|zahlenschloss|keypad|key ?box))"
    r"(?:s|[ -](?:code|number|nummer))?(?![^\W_])",
    re.IGNORECASE,
)
# What a code opens. "Code" alone may be that of an error, a country or a review.
_OPENED = LazyPattern(
    r"door|gate|alarm|lock|safe\b|keypad|key ?box|garage|entr(?:y|ance)|access|voicemail|phone|tablet|ipad|laptop|"
    r"screen|\bsim\b|vault|elevator|\blift\b|gym|cellar|tür|\btor|eingang|schloss|schlüssel|schlie(?:ß|ss)fach|"
    r"spind|tresor|zugangs|sicherheits|porte|puerta|coffre|portail|cassaforte|cancello|port(?:a|one)\b|allarme|alarma",
    re.IGNORECASE,
)
_NOT_OPENING = LazyPattern(
    r"(?:error|exit|status|return|response|reason|zip|postal|post|country|area|source|dress|discount|promo|coupon|"
    r"course|order|item|part|model|serial|service|tracking|voucher|gift|referral|sort|http|colou?r|bar|qr|swift|bank|"
    r"tax|language|event|fault|trouble|product|airport|booking|stock|article|flight|fehler|bestell|artikel|vor)[ -]?$",
    re.IGNORECASE,
)
_LINKS = frozenset(
    "is was are to = -> => → reads ist war auf lautet lautete heißt heisst est es era è é e sera será är er jest je "
    "это".split()
)
# Those that say what something is. A version is pinned *to* a number.
_SAYS = _LINKS - {"to"}
# Words that may stand between the verb and the value.
_BETWEEN = frozenset(
    "now still again currently always just simply actually jetzt nun noch wieder immer weiterhin derzeit aktuell "
    "ahora siempre todavía maintenant toujours sempre ancora adesso agora nog steeds".split()
)
_WORD = LazyPattern(r"\S+")
_DIGITS = LazyPattern(r"(?:\d{4,8}|\d{1,2}(?:-\d{1,2}){2,3})[#*]?")
_AS = LazyPattern(r"(?<!\S)(\S{6,64}) (?:as|als|como|comme) (?:\w{1,8} ){0,2}$", re.IGNORECASE)
# "login: admin / ...", "credentials are bob / ...".
_PAIR = LazyPattern(
    r"(?<![^\W_])(?:log-?in|credentials?|creds|zugangsdaten|benutzer(?:name)?|user(?:name)?)(?: (?:is|are|ist|sind))?"
    r"[ \t]{0,3}[: =][ \t]{0,3}[\w.@+-]{1,60}[ \t]{1,3}[/|][ \t]{1,3}(?P<value>\S{6,100})",
    re.IGNORECASE,
)
# The key of a wireless network, on one line with its name.
_WIFI_KEY = LazyPattern(
    r"(?<![^\W_])(?:wi-?fi|wlan|wpa[23]?|hotspot|router|ssid)(?![^\W_])[^\n]{0,60}?"
    r"(?<![^\W_])(?:key|schlüssel|cl[ée]|chiave|code)(?![^\W_])",
    re.IGNORECASE,
)
_OPENING, _CLOSING = "\"'`“‘«(<", "\"'`”’».,;:!?)>"


def told(text: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and stop of each secret."""
    lower = text.lower()
    wifi = _WIFI_KEY().finditer(text) if any(start in lower for start in _MAY_NAME_WIFI) else ()
    for name in wifi:
        if (span := _password_after(text, name)) is not None:
            yield "password", *span
    for name in _PASSWORD().finditer(text) if any(start in lower for start in _MAY_NAME_PASSWORD) else ():
        span = _value_before(text, name) or _password_after(text, name)
        if span is not None:
            yield "password", *span
    for pair in _PAIR().finditer(text) if any(start in lower for start in _MAY_NAME_PAIR) else ():
        if _is_told_password(pair["value"].rstrip(".,;")):
            yield "password", pair.start("value"), pair.start("value") + len(pair["value"].rstrip(".,;"))
    for name in _CODE().finditer(text) if any(start in lower for start in _MAY_NAME_CODE) else ():
        if (name["open"] is None or _opens_something(text, name)) and (span := _code_after(text, name)) is not None:
            yield "pin", *span


def _password_after(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    if _ABOUT().match(text, name.end()):
        return None
    return next((span for span, _ in _values_after(text, name.end()) if _is_told_password(text[slice(*span)])), None)


def _code_after(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    """Behind `pin` in small letters only if a verb says so: pin 4021 is a leg of a chip."""
    if name[0] in ("pin", "pins") and text[name.end() : name.end() + 1] != ":":
        return next(
            (span for span, link in _values_after(text, name.end()) if link in _SAYS and _is_code(text, span)), None
        )
    return next((span for span, _ in _values_after(text, name.end()) if _is_code(text, span)), None)


def _is_code(text: str, span: tuple[int, int]) -> bool:
    return _DIGITS().fullmatch(text, *span) is not None


def _values_after(text: str, end: int) -> Iterator[tuple[tuple[int, int], str]]:
    """Start and stop of each word that the text may mean as the value, and the word or mark that says so, if any."""
    stop = min(len(text), end + MOST_CHARACTERS)
    line_end = -1 if text.startswith(":\n", end) else text.find("\n", end, stop)
    link: str | None = ""  # at once is close enough
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
    """ "Use ... as the password"."""
    start = max(0, name.start() - NEAR_CODE)
    before = _AS().search(text[start : name.start()])
    if before is None or not _is_told_password(before[1].strip(_OPENING + _CLOSING)):
        return None
    return start + before.start(1), start + before.end(1)


def _opens_something(text: str, name: re.Match[str]) -> bool:
    if _NOT_OPENING().search(text[max(0, name.start() - 12) : name.start()]) or _NOT_OPENING().search(name[0][:-4]):
        return False
    start = max(0, name.start() - NEAR_CODE)
    start = max(start, text.rfind("\n", start, name.start()))
    return _OPENED().search(text, start, name.end() + NEAR_CODE) is not None


def _stripped(text: str, word: re.Match[str]) -> tuple[int, int]:
    """Without marks around it, unless they may be part of it: a password often ends with one."""
    value = word[0]
    start = word.start() + len(value) - len(value.lstrip(_OPENING))
    stop = word.end() - len(value) + len(value.rstrip(".,;:\"'`”’»)>"))
    return start, max(start, stop)


def _is_told_password(value: str) -> bool:
    """In a sentence more is asked than behind `password=`: a digit or a mark, and nothing that code is made of."""
    telling = any(map(str.isdigit, value)) or any(mark in value for mark in "!#$%&*+?@^~")
    plain = not value.startswith(("--", ":")) and not any(mark in value for mark in '=(){}[]`"')
    return telling and plain and is_password(value) and not is_placeholder(value)
