"""A client opens a server by address, keeps its key private, and loads only what it needs."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.pretty import pretty_repr
from starlette.responses import Response

from support.served_stores import serving
from trivet import AsyncTrivet, InvalidInput, Settings, StoreError, Trivet, load_settings

from .certificates import make_certificate
from .tcp_proxy import TcpProxy, proxied

KEY = "tvt.default.abc.very-secret"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://", "Give a server's address"),
        ("https://:443", "Give a server's address"),
        ("http://host:port", "Give a server's address"),
        ("http://[::1", "Give a server's address"),
        ("http://ho st", "Give a server's address"),
        ("http://host\n", "Give a server's address"),
        ("http://ana:hunter2@host", "key="),
        ("http://host?key=hunter2", "query"),
        ("http://host#hunter2", "query"),
    ],
)
def test_bad_address_is_refused(address: str, message: str) -> None:
    for kind in (Trivet, AsyncTrivet):
        with pytest.raises(InvalidInput, match=message) as caught:
            kind.open(address, key=KEY)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "proxy", ["proxy:3128", "socks5://proxy", "http://", "http://[", "http://ana:hunter2@"]
)
def test_bad_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(InvalidInput, match="proxy") as caught:
        Trivet.open("http://127.0.0.1:9", key=KEY, proxy=proxy)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Settings(proxy=proxy))


@pytest.mark.parametrize("key", ["tvt.a b", "tvt.a\r\nX-Other: 1", "tvt.schlüssel", "tvt.\x00"])
def test_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match="Copy it again") as caught:
        Trivet.open("http://127.0.0.1:9", key=key)
    assert key not in str(caught.value)


def test_key_from_argument_environment_or_file(
    address: str, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "trivet.toml").write_text(f'path = "{address}"\nkey = "{key}"\n')
    monkeypatch.setenv("TRIVET_CONFIG", str(tmp_path / "trivet.toml"))
    with Trivet.open() as trivet:
        assert trivet.server == address
        assert trivet.list().total == 0
    monkeypatch.setenv("TRIVET_KEY", "wrong")
    with Trivet.open(key=key) as trivet:
        assert trivet.list().total == 0
    monkeypatch.setenv("TRIVET_KEY", key)
    (tmp_path / "trivet.toml").write_text(f'path = "{address}"\n')
    with Trivet.open() as trivet, Trivet.open(settings=load_settings()) as other:
        assert trivet.list() == other.list()


def test_key_is_not_shown(address: str, key: str, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(path=address, key=key)
    assert key not in repr(settings)
    assert key not in str(settings)
    assert key not in pretty_repr(settings)
    assert settings.shown["key"] == "[hidden]"
    assert Settings().shown["key"] == ""
    with caplog.at_level(logging.DEBUG), Trivet.open(settings=settings) as trivet:
        trivet.remember("text")
        assert key not in repr(trivet)
    assert caplog.records, "httpx2 must have logged something"
    assert key not in caplog.text


def test_trailing_slash_is_ignored(address: str, key: str) -> None:
    with Trivet.open(f"{address}/", key=key) as trivet:
        assert trivet.list().total == 0


def test_own_scope_is_sent(address: str, key: str) -> None:
    with (
        Trivet.open(address, key=key, scope="acme/shop") as trivet,
        Trivet.open(address, key=key) as other,
    ):
        mine = trivet.remember("zebra text").id
        (many,) = trivet.remember_many([{"content": "horse text"}])
        named = trivet.remember("other text", scope="elsewhere").id
        unscoped = other.remember("server's own").id
        scopes = [trivet.get(id).scope for id in (mine, many.id, named, unscoped)]
    assert scopes == ["acme/shop", "acme/shop", "elsewhere", "default"]


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, private = make_certificate(tmp_path)
    tls = {"ssl_certfile": str(certificate), "ssl_keyfile": str(private)}
    with serving(Response(msgspec.json.encode([])), lifespan="off", **tls) as address:
        with (
            Trivet.open(address, key=KEY) as trivet,
            pytest.raises(StoreError, match="certificate verify failed"),
        ):
            trivet.shares()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with Trivet.open(address, key=KEY) as trivet:
            assert trivet.shares() == ()


def test_proxy_is_used_only_when_configured(
    network: TcpProxy, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with proxied(network.address) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.address)
        with Trivet.open(network.address, key=key) as trivet:
            assert trivet.list().total == 0
        assert proxy.requests == []
        with (
            Trivet.open(network.address, key=key, proxy=proxy.address) as trivet,
            pytest.raises(StoreError),
        ):
            trivet.list()
        assert proxy.requests[0].startswith(f"GET {network.address}/v1/memories HTTP/1.1")


def test_import_loads_no_http_library() -> None:
    script = "import sys, trivet; print([name for name in ('httpx2', 'httpcore2', 'ssl') if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_client_loads_no_model(address: str, key: str) -> None:
    script = (
        "import sys\nfrom trivet import Trivet\n"
        "with Trivet.open(sys.argv[1], key=sys.argv[2]) as trivet: trivet.recall('text')\n"
        "print([name for name in ('onnxruntime', 'numpy', 'sqlite3', 'tokenizers') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, address, key], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
