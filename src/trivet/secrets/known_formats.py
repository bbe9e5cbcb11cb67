"""Secrets recognized by a format: issued keys, passwords in commands, and seed phrases."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from trivet.secrets.value_shape import (
    LazyPattern,
    character_classes,
    entropy,
    is_documented,
    is_password,
    is_placeholder,
    is_token,
    is_weak_password,
)

Check = Callable[[str], bool]


def _any(value: str) -> bool:
    return True


class Rule(msgspec.Struct, frozen=True):
    """A pattern, tried only if one of the `anchors` occurs in the lower-case text.

    The secret is the named group that matched, or the whole match.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: LazyPattern
    check: Check = _any
    may_be_placeholder: bool = True

    def spans(self, text: str) -> list[tuple[int, int]]:
        found = ((match, match.lastgroup or 0) for match in self.pattern().finditer(text))
        return [match.span(group) for match, group in found if self._holds(match[group])]

    def _holds(self, value: str) -> bool:
        return self.check(value) and not (self.may_be_placeholder and is_placeholder(value))


def rule(
    kind: str,
    anchors: str,
    pattern: str,
    check: Check = _any,
    *,
    flags: int = 0,
    placeholder: bool = True,
) -> Rule:
    return Rule(kind, tuple(anchors.split()), LazyPattern(pattern, flags), check, placeholder)


# Visa, Mastercard, American Express, Discover, Diners, JCB: leading digits and lengths.
_ISSUERS = LazyPattern(
    r"4\d{15}|4\d{18}|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|"
    r"6(?:011|5\d\d|4[4-9]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"
)
CARD = r"(?<![\w.+-])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}|3\d{3}([ -])\d{6}\2\d{4,5}|\d{14,19})(?![\w-]|\.\d)"  # noqa: E501
IBAN = r"(?<![\w-])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![\w-])"
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "BE": 16, "BG": 22, "BR": 29, "CH": 21, "CY": 28, "CZ": 24, "DE": 22,  # noqa: E501
    "DK": 18, "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IL": 23,  # noqa: E501
    "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28,  # noqa: E501
    "PT": 25, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TR": 26, "UA": 29,  # noqa: E501
}  # fmt: skip


def is_card(text: str) -> bool:
    digits = text.replace(" ", "").replace("-", "")
    return (
        bool(_ISSUERS().fullmatch(digits))
        and _luhn(digits)
        and len(set(digits)) > 3
        and not is_documented(digits)
    )


def _luhn(digits: str) -> bool:
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def is_iban(text: str) -> bool:
    account = text.replace(" ", "")
    if _IBAN_LENGTHS.get(account[:2]) != len(account) or is_documented(account):
        return False
    return (
        int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
    )


_START = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"
# What connects a name and its value: `_api_key: `, `-token" => "`.
_NAMED = r"[_-]?(?:api)?[_-]?(?:key|pwd|pw|password|pass|token)[\"']?\]?\s{0,4}(?:=>|:=|::|[=:]|\s)\s{0,4}[\"']?"  # noqa: E501


def _mixed(value: str) -> bool:
    return entropy(value) >= 2.9


def _prefixed(kind: str, prefix: str, rest: str) -> Rule:
    return rule(kind, prefix.lower(), f"{_START}{re.escape(prefix)}{rest}{_END}", _mixed)


def is_jwt(value: str) -> bool:
    head = value.split(".")[0]
    try:
        return "alg" in json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        return False


def is_basic(value: str) -> bool:
    try:
        user, colon, password = (
            base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
        )
    except (binascii.Error, ValueError):
        return False
    return bool(user and colon and password) and user.isprintable()


def _is_bearer(value: str) -> bool:
    return is_token(value) or (
        len(value) >= 20 and character_classes(value) >= 3 and entropy(value) >= 3.5
    )


def _is_url_password(value: str) -> bool:
    return value.lower() not in {
        "password",
        "passwd",
        "pass",
        "pw",
        "pwd",
        "secret",
        "token",
        "key",
        "x-oauth-basic",
    }


_PEM = (
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?:(?!-----)[\s\S])*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"  # noqa: E501
    r"|(?:\s|\\n|[A-Za-z0-9+/=])*)"
)

ISSUED: tuple[Rule, ...] = (
    rule("private-key", "private", _PEM, lambda value: len(value) > 120, placeholder=False),
    rule("private-key", "putty-user-key-file", r"PuTTY-User-Key-File-\d(?:(?!PuTTY-User|Private-MAC)[\s\S])*Private-MAC: [0-9a-f]+", placeholder=False),  # noqa: E501
    _prefixed("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{32,}"),
    _prefixed("openai-key", "sk-proj-", r"[A-Za-z0-9_-]{32,}"),
    _prefixed("openai-key", "sk-svcacct-", r"[A-Za-z0-9_-]{32,}"),
    _prefixed("openrouter-key", "sk-or-v1-", r"[0-9a-f]{64}"),
    rule("openai-key", "sk-", _START + r"sk-[A-Za-z0-9]{32,64}" + _END, is_token),
    _prefixed("google-api-key", "AIza", r"[0-9A-Za-z_-]{35}"),
    _prefixed("google-oauth-secret", "GOCSPX-", r"[0-9A-Za-z_-]{28}"),
    _prefixed("google-oauth-token", "ya29.", r"[0-9A-Za-z_-]{30,}"),
    rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _START + r"gh[pousr]_[A-Za-z0-9]{36,251}" + _END, _mixed),  # noqa: E501
    _prefixed("github-token", "github_pat_", r"[A-Za-z0-9_]{60,}"),
    rule("gitlab-token", "glpat- gldt- glft- glsoat- glrt- glptt- glcbt- glagent- gloas-",
         _START + r"gl(?:pat|dt|ft|soat|rt|ptt|cbt|agent|oas)-[A-Za-z0-9_.-]{20,}", _mixed),
    rule("slack-token", "xoxb- xoxp- xoxa- xoxo- xoxs- xoxr- xoxe xapp-",
         _START + r"(?:xox[abposr]-|xoxe(?:\.xox[bp])?-|xapp-)[A-Za-z0-9-]{20,}", _mixed),
    rule("slack-webhook", "hooks.slack.com",
         r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9_]+/[A-Za-z0-9_]+/[A-Za-z0-9_/]{8,})", _mixed),  # noqa: E501
    rule("discord-webhook", "/api/webhooks/",
         r"discord(?:app)?\.com/api/webhooks/\d{15,21}/(?P<secret>[A-Za-z0-9_-]{40,})", _mixed),
    rule("discord-token", ".", _START + r"[MNO][A-Za-z\d_-]{23,26}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,38}" + _END, is_token),  # noqa: E501
    rule("teams-webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/(?P<secret>[\w@/-]{60,})"),  # noqa: E501
    _prefixed("npm-token", "npm_", r"[A-Za-z0-9]{36}"),
    _prefixed("pypi-token", "pypi-AgE", r"[A-Za-z0-9_-]{60,}"),
    rule("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _START + r"do[opr]_v1_[0-9a-f]{64}" + _END, _mixed),  # noqa: E501
    rule("huggingface-token", "hf_ api_org_", _START + r"(?:hf_|api_org_)[A-Za-z0-9]{34,}" + _END, _mixed),  # noqa: E501
    _prefixed("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    rule("twilio-key", "ac sk", _START + r"(?:AC|SK)[0-9a-f]{32}" + _END, _mixed),
    rule("stripe-key", "k_live_ k_test_ whsec_",
         _START + r"(?:(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})", _mixed),  # noqa: E501
    rule("aws-access-key", "akia asia abia acca", _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}" + _END, _mixed),  # noqa: E501
    rule("aws-secret-key", "akia asia",
         r"(?:AKIA|ASIA)[A-Z2-7]{16}[^A-Za-z0-9+]{1,6}(?:[A-Za-z_ ]{0,40}[^A-Za-z0-9+]{1,6})?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", is_token),  # noqa: E501
    rule("azure-key", "accountkey= sharedaccesskey= accesskey=",
         r"(?:AccountKey|SharedAccessKey|AccessKey)=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})", _mixed, flags=re.IGNORECASE),  # noqa: E501
    rule("azure-sas", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/]{40,}(?:%3D|=){0,2})", _mixed),
    rule("jwt", "eyj", _START + r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,}", is_jwt),  # noqa: E501
    _prefixed("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    rule("wireguard-key", "privatekey presharedkey",
         r"(?:PrivateKey|PresharedKey)\s*[=:]\s*(?P<secret>[A-Za-z0-9+/]{43}=)", _mixed, flags=re.IGNORECASE),  # noqa: E501
    rule("url-password", "://", r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*+://[^\s:/@'\"<>]*:(?P<secret>[^\s/@'\"<>]{3,}(?:@[^\s/@'\"<>.]+(?=@))?)@(?=[\w\[])",
         _is_url_password),
    rule("basic-auth", "basic ", r"\bBasic\s+(?P<secret>[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=])", is_basic, flags=re.IGNORECASE),  # noqa: E501
    rule("basic-auth", "-u --user", r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]['\"]?[\w.@+-]+:(?P<secret>[^\s'\"]{4,})"),  # noqa: E501
    rule("bearer-token", "bearer ", r"\bBearer\s+(?P<secret>[A-Za-z0-9._~+/-]{16,}=*)", _is_bearer, flags=re.IGNORECASE),  # noqa: E501
    rule("vault-token", "hvs. hvb. hvr.", _START + r"hv[sbr]\.[A-Za-z0-9_-]{24,}", _mixed),
    rule("databricks-token", "dapi", _START + r"dapi[0-9a-f]{32}(?:-\d)?" + _END, _mixed),
    rule("shopify-token", "shpat_ shpca_ shppa_ shpss_", _START + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}" + _END, _mixed),  # noqa: E501
    rule("linear-key", "lin_api_ lin_oauth_", _START + r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}" + _END, _mixed),  # noqa: E501
    rule("notion-token", "secret_ ntn_", _START + r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})" + _END, _mixed),  # noqa: E501
    _prefixed("groq-key", "gsk_", r"[A-Za-z0-9]{40,}"),
    _prefixed("replicate-token", "r8_", r"[A-Za-z0-9]{37,}"),
    _prefixed("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}"),
    _prefixed("xai-key", "xai-", r"[A-Za-z0-9]{60,}"),
    _prefixed("voyage-key", "pa-", r"[A-Za-z0-9_-]{40,}"),
    _prefixed("newrelic-key", "NRAK-", r"[A-Z0-9]{27}"),
    _prefixed("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _prefixed("sentry-token", "sntrys_", r"[A-Za-z0-9+/=_-]{40,}"),
    _prefixed("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    _prefixed("docker-token", "dckr_pat_", r"[A-Za-z0-9_-]{27,}"),
    _prefixed("atlassian-token", "ATATT3", r"[A-Za-z0-9_=-]{60,}"),
    _prefixed("supabase-key", "sbp_", r"[0-9a-f]{40}"),
    _prefixed("doppler-token", "dp.", r"(?:pt|st|ct|sa)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),  # noqa: E501
    rule("planetscale-token", "pscale_", _START + r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,}", _mixed),  # noqa: E501
    rule("terraform-token", ".atlasv1.", _START + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}", _mixed),  # noqa: E501
    rule("square-token", "sq0atp- sq0csp- eaaa", _START + r"(?:sq0(?:atp|csp)-[0-9A-Za-z_-]{22,43}|EAAA[a-zA-Z0-9_-]{60})" + _END, _mixed),  # noqa: E501
    _prefixed("trivet-key", "tvt.", r"[a-z0-9_-]{1,63}\.[0-9a-f]{12}\.[A-Za-z0-9_-]{43}"),
    _prefixed("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    rule("openai-key", "t3blbkfj", _START + r"sk-[A-Za-z0-9_-]{20,160}?T3BlbkFJ[A-Za-z0-9_-]{20,160}", _mixed),  # noqa: E501
    rule("telegram-token", ":aa", r"(?<!\d)\d{8,10}:AA[0-9A-Za-z_-]{33}(?![0-9A-Za-z_-])", _mixed),
    rule("mailchimp-key", "-us", _START + r"[0-9a-f]{32}-us[0-9]{1,2}" + _END, _mixed),
    rule("artifactory-token", "akc", _START + r"AKC[A-Za-z0-9]{10,}" + _END, is_token),
    rule("cloudant-credentials", "cloudant", rf"cloudant{_NAMED}(?P<secret>[0-9a-f]{{64}}|[a-z]{{24}})" + _END, _mixed, flags=re.IGNORECASE),  # noqa: E501
    rule("cloudant-credentials", ".cloudant.com", r"://[\w-]{1,80}:(?P<secret>[0-9a-f]{64}|[a-z]{24})@[\w-]{1,80}\.cloudant\.com", _mixed, flags=re.IGNORECASE),  # noqa: E501
    rule("ibm-cloud-key", "ibm", rf"ibm[_-]?(?:cloud)?[_-]?(?:iam)?{_NAMED}(?P<secret>[A-Za-z0-9_-]{{44}})(?![A-Za-z0-9_-])", _mixed, flags=re.IGNORECASE),  # noqa: E501
    rule("ibm-cos-key", "cos_hmac cos-hmac secret_access_key", rf"(?:hmac[_-]?)?secret[_-]?access{_NAMED}(?P<secret>[0-9a-f]{{48}})" + _END, _mixed, flags=re.IGNORECASE),  # noqa: E501
    rule("softlayer-key", "softlayer", rf"softlayer{_NAMED}(?P<secret>[a-z0-9]{{64}})" + _END, _mixed, flags=re.IGNORECASE),  # noqa: E501
    rule("softlayer-key", "softlayer", r"api\.softlayer\.com/soap/v3(?:\.1)?/(?P<secret>[a-z0-9]{64})" + _END, _mixed),  # noqa: E501
    rule("credit-card", "", CARD, is_card),
    rule("iban", "", IBAN, is_iban),
)  # fmt: skip


# The rest of the command between a tool and its option.
_ARGUMENTS = r"\b[^\n|;&]{0,160}?\s"
_VALUE = r"(?:\"(?P<quoted>[^\"\n]{4,100})\"|'(?P<single>[^'\n]{4,100})'|(?P<bare>[^\s\"'`|;&<>]{4,100}))"  # noqa: E501


def _option(anchors: str, tools: str, options: str) -> Rule:
    return rule(
        "password",
        anchors,
        rf"(?<![\w.-])(?:{tools}){_ARGUMENTS}(?:{options}){_VALUE}",
        _looks_like_password,
    )


def _looks_like_password(value: str) -> bool:
    """Reject words and numbers, which are usually another argument."""
    return is_password(value) or is_weak_password(value)


COMMANDS: tuple[Rule, ...] = (
    _option("mysql mariadb", r"(?:mysql|mariadb)[\w-]*", r"-p"),
    _option("sshpass", r"sshpass", r"-p\s*"),
    _option("redis-cli", r"redis-cli", r"(?:-a|--pass)\s+"),
    _option("login", r"(?:docker|podman|buildah|skopeo|helm|oc|az|nerdctl|cf|argocd|vault|npm)\b[^\n|;&]{0,60}?\blogin", r"(?:-p|--password)[\s=]\s*"),  # noqa: E501
    _option("mongo", r"mongo\w*", r"(?:-p|--password)[\s=]\s*"),
    _option("ldap", r"ldap\w+", r"-w\s*"),
    _option("zip", r"(?:un)?zip", r"-P\s*"),
    _option("7z rar", r"7z[ar]?|(?:un)?rar", r"-h?p"),
    _option("smbclient rpcclient winexe", r"smbclient|rpcclient|winexe", r"(?:-U|--user)[\s=]\s*[^\s%]{1,80}%"),  # noqa: E501
    _option("/user:", r"net\s+use", r"/user:\S{1,80}\s+"),
    _option("/p:", r"[swx]?l?freerdp3?|mstsc", r"/p:"),
    _option("sqlcmd ipmitool mosquitto bcp snmp rdesktop cqlsh psexec", r"sqlcmd|ipmitool|mosquitto_\w+|bcp|rdesktop|cqlsh|psexec(?:64)?(?:\.exe)?", r"-[pP]\s+"),  # noqa: E501
    _option("ssh-keygen", r"ssh-keygen", r"-[NP]\s*"),
    _option("htpasswd", r"htpasswd", r"-\w*b\w*\s+\S{1,120}\s+\S{1,80}\s+"),
    _option("lftp", r"lftp", r"-u\s+[^\s,]{1,80},"),
    _option("-a --auth", r"https?|xh", r"(?:-a|--auth)[\s=]\s*[^\s:]{1,80}:"),
    rule("password", "pass", rf"(?<![\w-])--?(?:\w{{1,20}}-)?(?:password|passwd|passphrase|pass|pw)\s+{_VALUE}", _looks_like_password, flags=re.IGNORECASE),  # noqa: E501
    rule("token", "--", rf"(?<![\w-])--?(?:\w{{1,20}}-)?(?:token|secret|api-?key|access-key)\s+{_VALUE}", is_weak_password, flags=re.IGNORECASE),  # noqa: E501
    rule("password", "pass=", rf"(?<![\w-])[A-Z][A-Z0-9_]{{0,40}}PASS={_VALUE}", is_weak_password),
    rule("password", "sudo", r"\becho\s+" + _VALUE + r"\s*\|\s*sudo\s[^\n|;&]{0,40}?-\w*S", _looks_like_password),  # noqa: E501
    rule("password", "password", r"\b(?:machine\s{1,8}\S{1,200}|default)\s{1,40}login\s{1,8}\S{1,200}\s{1,40}(?:account\s{1,8}\S{1,200}\s{1,40})?password\s{1,8}(?P<bare>\S{1,200})", lambda value: len(value) >= 4),  # noqa: E501
)  # fmt: skip


# Lengths in words. The checksum has a bit per three words.
LENGTHS = (24, 21, 18, 15, 12)
# A longer run of such words is part of the word list itself.
LONGEST_RUN = 30
# With a label before it, a phrase needs no valid checksum: a word may be misspelled.
_PHRASE_LABEL = LazyPattern(
    r"seed|mnemonic|recovery|wallet|metamask|ledger|trezor|backup (?:words|phrase)", re.IGNORECASE
)
NAMED_BEFORE = 60
# With only blanks, commas and numbers between the words.
_RUN = LazyPattern(r"(?<![^\W_])[A-Za-z]{3,8}+(?:[\s,;.:|\d()-]{1,12}+[A-Za-z]{3,8}+){11,}+")
_WORD = LazyPattern(r"[A-Za-z]+")

Span = tuple[int, int]


@cache
def _numbers() -> dict[str, int]:
    words = (files("mnemonic") / "wordlist" / "english.txt").read_text(encoding="utf-8").split()
    return {word: number for number, word in enumerate(words)}


def seed_phrases(text: str) -> Iterator[tuple[str, int, int]]:
    for short in _RUN().finditer(text):
        for run in _runs(text, short):
            if LENGTHS[-1] <= len(run) <= LONGEST_RUN and (span := _phrase(text, run)) is not None:
                yield "seed-phrase", *span


def _runs(text: str, short: re.Match[str]) -> Iterator[list[Span]]:
    numbers = _numbers()
    run: list[Span] = []
    for word in _WORD().finditer(text, *short.span()):
        if word[0].lower() in numbers:
            run.append(word.span())
        elif run:
            yield run
            run = []
    yield run


def _phrase(text: str, run: Sequence[Span]) -> Span | None:
    words = [text[slice(*span)].lower() for span in run]
    for length in LENGTHS:
        for first in range(len(run) - length + 1):
            if _has_check_sum(words[first : first + length]):
                return run[first][0], run[first + length - 1][1]
    start = run[0][0]
    named = len(run) in LENGTHS and _PHRASE_LABEL().search(
        text, max(0, start - NAMED_BEFORE), start
    )
    return (start, run[-1][1]) if named else None


def _has_check_sum(words: Sequence[str]) -> bool:
    numbers = _numbers()
    value = 0
    for word in words:
        value = value << 11 | numbers[word]
    bits = len(words) // 3
    entropy, check = value >> bits, value & ((1 << bits) - 1)
    return hashlib.sha256(entropy.to_bytes(bits * 4)).digest()[0] >> (8 - bits) == check
