# ruff: noqa: E501 - one rule a line, as far as it goes
"""Passwords on command lines and in the files of tools, where no name but an option stands before them."""

from __future__ import annotations

import re

from trivet.secrets.detect.issued import Rule, rule
from trivet.secrets.detect.value_shape import is_password, is_word_like_password

# What may stand between a tool and its option: the same command, no more than a long line of it.
_ARGUMENTS = r"\b[^\n|;&]{0,160}?\s"
_VALUE = r"(?:\"(?P<quoted>[^\"\n]{4,100})\"|'(?P<single>[^'\n]{4,100})'|(?P<bare>[^\s\"'`|;&<>]{4,100}))"


def _option(anchors: str, tools: str, options: str) -> Rule:
    return rule("password", anchors, rf"(?<![\w.-])(?:{tools}){_ARGUMENTS}(?:{options}){_VALUE}", _is_given)


def _is_given(value: str) -> bool:
    """A tool takes anything; words and numbers are more often another argument."""
    return is_password(value) or is_word_like_password(value)


COMMANDS: tuple[Rule, ...] = (
    _option("mysql mariadb", r"(?:mysql|mariadb)[\w-]*", r"-p"),
    _option("sshpass", r"sshpass", r"-p\s*"),
    _option("redis-cli", r"redis-cli", r"(?:-a|--pass)\s+"),
    _option("login", r"(?:docker|podman|buildah|skopeo|helm|oc|az|nerdctl|cf|argocd|vault|npm)\b[^\n|;&]{0,60}?\blogin", r"(?:-p|--password)[\s=]\s*"),
    _option("mongo", r"mongo\w*", r"(?:-p|--password)[\s=]\s*"),
    _option("ldap", r"ldap\w+", r"-w\s*"),
    _option("zip", r"(?:un)?zip", r"-P\s*"),
    _option("7z rar", r"7z[ar]?|(?:un)?rar", r"-h?p"),
    _option("smbclient rpcclient winexe", r"smbclient|rpcclient|winexe", r"(?:-U|--user)[\s=]\s*[^\s%]{1,80}%"),
    _option("/user:", r"net\s+use", r"/user:\S{1,80}\s+"),
    _option("/p:", r"[swx]?l?freerdp3?|mstsc", r"/p:"),
    _option("sqlcmd ipmitool mosquitto bcp snmp rdesktop cqlsh psexec", r"sqlcmd|ipmitool|mosquitto_\w+|bcp|rdesktop|cqlsh|psexec(?:64)?(?:\.exe)?", r"-[pP]\s+"),
    _option("ssh-keygen", r"ssh-keygen", r"-[NP]\s*"),
    _option("htpasswd", r"htpasswd", r"-\w*b\w*\s+\S{1,120}\s+\S{1,80}\s+"),
    _option("lftp", r"lftp", r"-u\s+[^\s,]{1,80},"),
    _option("-a --auth", r"https?|xh", r"(?:-a|--auth)[\s=]\s*[^\s:]{1,80}:"),
    rule("password", "pass", rf"(?<![\w-])--?(?:\w{{1,20}}-)?(?:password|passwd|passphrase|pass|pw)\s+{_VALUE}", _is_given, flags=re.IGNORECASE),
    rule("token", "--", rf"(?<![\w-])--?(?:\w{{1,20}}-)?(?:token|secret|api-?key|access-key)\s+{_VALUE}", is_word_like_password, flags=re.IGNORECASE),
    rule("password", "pass=", rf"(?<![\w-])[A-Z][A-Z0-9_]{{0,40}}PASS={_VALUE}", is_word_like_password),
    rule("password", "sudo", r"\becho\s+" + _VALUE + r"\s*\|\s*sudo\s[^\n|;&]{0,40}?-\w*S", _is_given),
    rule("password", "password", r"\b(?:machine\s{1,8}\S{1,200}|default)\s{1,40}login\s{1,8}\S{1,200}\s{1,40}(?:account\s{1,8}\S{1,200}\s{1,40})?password\s{1,8}(?P<bare>\S{1,200})", lambda value: len(value) >= 4),
)  # fmt: skip
