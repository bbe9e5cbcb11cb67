"""Rarer secrets, by patterns of the library `detect-secrets`, loaded only where one of its words occurs (140 ms).

Only its patterns are used. Its own scan may verify what it finds by sending it to the issuer.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

import msgspec

from trivet.secrets.detect.value_shape import is_placeholder


class Plugin(msgspec.Struct, frozen=True):
    """One detector of the library, and texts of which one must occur for it to find anything."""

    kind: str
    module: str
    name: str
    anchors: tuple[str, ...]


# Its keys end with a data centre, us1 to us21.
MAILCHIMP_ENDS = tuple(f"-us{digit}" for digit in range(1, 10))

PLUGINS: tuple[Plugin, ...] = (
    Plugin("artifactory-token", "artifactory", "ArtifactoryDetector", ("akc",)),
    Plugin("cloudant-credentials", "cloudant", "CloudantDetector", ("cloudant",)),
    Plugin("ibm-cloud-key", "ibm_cloud_iam", "IbmCloudIamDetector", ("ibm",)),
    Plugin("ibm-cos-key", "ibm_cos_hmac", "IbmCosHmacDetector", ("cos_hmac", "cos-hmac", "secret_access_key")),
    Plugin("mailchimp-key", "mailchimp", "MailchimpDetector", MAILCHIMP_ENDS),
    Plugin("softlayer-key", "softlayer", "SoftlayerDetector", ("softlayer",)),
    Plugin("telegram-token", "telegram_token", "TelegramBotTokenDetector", (":aa",)),
    Plugin("pypi-token", "pypi_token", "PypiTokenDetector", ("pypi-ag",)),
    Plugin("openai-key", "openai", "OpenAIDetector", ("t3blbkfj",)),
)  # fmt: skip


@cache
def patterns(plugin: Plugin) -> tuple[re.Pattern[str], ...]:
    detector = getattr(import_module(f"detect_secrets.plugins.{plugin.module}"), plugin.name)
    return tuple(detector.denylist)


def spans(plugin: Plugin, text: str) -> list[tuple[int, int]]:
    found = []
    for pattern in patterns(plugin):
        for match in pattern.finditer(text):
            group = next((at for at in range(1, pattern.groups + 1) if match[at]), 0)
            start, stop = match.span(group)
            value = text[start:stop]
            start += len(value) - len(value.lstrip(' \t\n=:"'))
            stop -= len(value) - len(value.rstrip(' \t\n"'))
            if not is_placeholder(text[start:stop]):
                found.append((start, stop))
    return found
