"""What looks like a secret and is none: placeholders, references to where a secret is, keys out of documentation."""

from __future__ import annotations

import re

from trivet.secrets.detect.lazy_pattern import Late

# Words people put where the secret goes. Only whole words or obvious parts: a random key may hold any three letters.
_WORDS = Late(
    r"example|your[-_ ]?|placeholder|change[-_]?me|replace[-_]?(?:me|with)|redacted|dummy|insert[-_]|sample|"
    r"todo|fixme|not[-_]?a[-_]?real|x{4}|\*\*\*|\.\.\.|…|•••|0{8}|1{8}|a{8}|fake|my[-_](?:secret|token|key|pass)|"
    r"12345678|abcdefgh|deadbeef|goes[-_]here|test[-_]?(?:token|secret|key|password)(?![a-z0-9]{6})|some[-_]|foobar",
    re.IGNORECASE,
)
# <token>, {{ token }}, ${TOKEN}, $TOKEN, %TOKEN%, [token], and calls or lookups that fetch it.
_REFERENCE = Late(
    r"^(?:<[^>]*>?|\{\{?.*|\$[\w{(].*|%\w+%|\[.*|@.*|&\w+|[\w.]+\(.*|[\w.]+\[.*|(?:os\.|process\.env|env\.|self\.|config\.|"
    r"settings\.|secrets?\.|vault\.|var\.|data\.|import\.meta|request\.|req\.|ctx\.|this\.|args\.|params\.).*|"
    r"(?:op|vault|arn|ssm|secretsmanager|keyring|file|https?|gcp|aws|sops|ref|projects)[:/].*|(?:\.{0,2}|~)/.*|!\w+.*|"
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)$"
)
# Published by their makers as examples; they open nothing.
_DOCUMENTED = frozenset(
    {
        "4eC39HqLyjWDarjtT1zdp7dc",  # Stripe's
        "4242424242424242", "4000056655665556", "5555555555554444", "2223003122003222", "5200828282828210",
        "5105105105105100", "378282246310005", "371449635398431", "6011111111111117", "6011000990139424",
        "3056930009020004", "36227206271667", "30569309025904", "38520000023237", "3566002020360505",
        "6200000000000005", "4111111111111111", "4012888888881881", "4222222222222", "4000000000000002",
        "DE89370400440532013000", "GB82WEST12345698765432", "GB29NWBK60161331926819", "GB33BUKB20201555555555",
        "FR1420041010050500013M02606", "CH9300762011623852957", "NL91ABNA0417164300", "ES9121000418450200051332",
        "AT611904300234573201", "BE68539007547034", "IT60X0542811101000000123456",
    }
)  # fmt: skip
_DOCUMENTED_PARTS = (
    "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l",  # the token on jwt.io
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ",  # Aladdin:open sesame, of RFC 7617
)
FEWEST_DIFFERENT = 5


def is_placeholder(value: str) -> bool:
    """Whether nobody could log in with this: a stand-in, a reference, or a key out of documentation."""
    if len(set(value)) < FEWEST_DIFFERENT or _WORDS().search(value) or _REFERENCE().match(value):
        return True
    return is_documented(value)


def is_documented(value: str) -> bool:
    bare = value.replace(" ", "").replace("-", "")
    tail = value.rpartition("_")[2]
    return bare in _DOCUMENTED or tail in _DOCUMENTED or any(part in value for part in _DOCUMENTED_PARTS)
