"""A small project to search: code, a test, a page, and a file with terminal escape sequences."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "shop/retry.py": '''"""When a server says to come back later."""


def parse_retry_after(header: str) -> float:
    """How many seconds the server asks us to wait."""
    return float(header)


def next_attempt(count: int) -> float:
    """Wait longer after each failed attempt."""
    return 2.0**count
''',
    "shop/client.py": '''from shop.retry import parse_retry_after


class Client:
    """Speaks to the warehouse."""

    def send(self, order: str) -> str:
        """Sends an order, and waits where the warehouse is busy."""
        wait = parse_retry_after("3")
        return f"{order} after {wait}"
''',
    "shop/basket.ts": """export function totalPrice(prices: number[]): number {
  return prices.reduce((sum, price) => sum + price, 0);
}
""",
    "shop/colours.py": 'RED = "\x1b[31mred alert\x1b[0m"\n',
    "tests/test_retry.py": """from shop.retry import parse_retry_after


def test_parse_retry_after() -> None:
    assert parse_retry_after("3") == 3.0
""",
    "docs/guide.md": "# Orders\n\nHow an order is sent to the warehouse.\n",
    "shop/logo.png": "\x89PNG\n",
}


def code_tree(folder: Path) -> Path:
    """Write the project without git, which saves starting a process."""
    for path, text in FILES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder
