from __future__ import annotations

import pytest

from support.endpoint import Endpoint, Reply, endpoint
from support.second_model import MINILM
from trivet.models.embed.onnx import OnnxEmbedder, described

__all__ = ["Endpoint", "Reply", "endpoint"]


@pytest.fixture(scope="session")
def minilm() -> OnnxEmbedder:
    return OnnxEmbedder(described(MINILM))
