"""Card and account numbers, told by their check digits."""

from __future__ import annotations

from trivet.secrets.detect.harmless import is_documented
from trivet.secrets.detect.lazy_pattern import Late

# Visa, Mastercard, American Express, Discover, Diners, JCB: first digits and lengths.
_ISSUERS = Late(
    r"4\d{15}|4\d{18}|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|"
    r"6(?:011|5\d\d|4[4-9]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"
)
CARD = r"(?<![\w.+-])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}|3\d{3}([ -])\d{6}\2\d{4,5}|\d{14,19})(?![\w-]|\.\d)"
IBAN = r"(?<![\w-])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![\w-])"
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "BE": 16, "BG": 22, "BR": 29, "CH": 21, "CY": 28, "CZ": 24, "DE": 22,
    "DK": 18, "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IL": 23,
    "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28,
    "PT": 25, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TR": 26, "UA": 29,
}  # fmt: skip


def is_card(text: str) -> bool:
    digits = text.replace(" ", "").replace("-", "")
    return bool(_ISSUERS().fullmatch(digits)) and _luhn(digits) and len(set(digits)) > 3 and not is_documented(digits)


def _luhn(digits: str) -> bool:
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def is_iban(text: str) -> bool:
    account = text.replace(" ", "")
    if _IBAN_LENGTHS.get(account[:2]) != len(account) or is_documented(account):
        return False
    return int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
