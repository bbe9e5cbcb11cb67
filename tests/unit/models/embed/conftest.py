from __future__ import annotations

import pytest

from support.endpoint import Endpoint, Reply, endpoint
from trivet.models.embed.onnx import OnnxEmbedder, stock

__all__ = ["Endpoint", "Reply", "endpoint"]


@pytest.fixture(scope="session")
def minilm() -> OnnxEmbedder:
    return stock()
