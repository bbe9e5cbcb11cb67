"""Keys in HashiCorp Vault's key-value store, version 2, with compare-and-set."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from trivet.common.breaker import breaker_for
from trivet.errors import InvalidInput, SecretError
from trivet.secrets.key_storage import EMPTY, Keys, decode, encode

SECONDS = 10.0
FIELD = "keys"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that refuses redirects: they would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class VaultKeyStore:
    """A key store at https://HOST:8200/MOUNT/PATH."""

    def __init__(self, address: str, token: str) -> None:
        parts = urlsplit(address)
        mount, _, path = parts.path.strip("/").partition("/")
        if parts.scheme not in ("http", "https") or not mount or not path or parts.username:
            raise InvalidInput(
                "secrets_vault: must be an address such as "
                "https://vault.acme.dev:8200/secret/trivet."
            )
        if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise InvalidInput("secrets_vault: must be an https address, except on this machine.")
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._url = f"{self._host}/v1/{mount}/data/{path}"
        self._token = token
        self._opener = urllib.request.build_opener(_NoRedirect)
        # Writes with secrets are serialized on the keys, so only one may wait for a vault that
        # hangs.
        self._breaker = breaker_for(
            "vault", self._url, "", lambda: self._asked("GET"), _vault_paused_error
        )

    @property
    def name(self) -> str:
        return f"the vault at {self._host}"

    def read(self) -> Keys:
        return self._read()[0]

    def write(self, before: Keys, after: Keys) -> bool:
        found, version = self._read()
        if found != before:
            return False
        body = {"data": {FIELD: encode(after).decode()}, "options": {"cas": version}}
        try:
            self._ask("POST", body)
        except _Refused as refused:
            if refused.status == 400:  # another process wrote first: the caller reads again
                return False
            raise
        return True

    def _read(self) -> tuple[Keys, int]:
        try:
            data = self._ask("GET")["data"]
        except _Refused as refused:
            if refused.status == 404:
                return EMPTY, 0
            raise
        if not isinstance(data.get("data"), dict) or FIELD not in data["data"]:
            raise SecretError(
                f"{self.name} holds something else under that path. Use another path."
            )
        return decode(data["data"][FIELD], self.name), int(data["metadata"]["version"])

    def _ask(self, method: str, body: object = None) -> Any:
        return self._breaker.call(lambda: self._asked(method, body))

    def _asked(self, method: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {
            "X-Vault-Token": self._token,
            "X-Vault-Request": "true",
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(self._url, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise _Refused(self.name, error.code) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            silent = SecretError(
                f"{self.name} does not answer ({reason}). Nothing was written; try again."
            )
            silent.fault = (
                "hung"
                if isinstance(reason, TimeoutError) or isinstance(error, TimeoutError)
                else "down"
            )
            raise silent from None


def _vault_paused_error(reason: str) -> SecretError:
    return SecretError(f"{reason[:1].upper()}{reason[1:]}. Nothing was written.")


class _Refused(SecretError):
    def __init__(self, name: str, status: int) -> None:
        super().__init__(
            f"{name} returned status {status}. Check VAULT_TOKEN and its policy for this path."
        )
        self.status = status
