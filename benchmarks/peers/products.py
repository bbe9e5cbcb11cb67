"""The measured products with their versions and settings, and those left out with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OURS = "trivet"


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product with a driver of its name, run in an environment of its packages."""

    name: str
    title: str
    packages: tuple[str, ...]
    setting: str
    # Loads an SQLite extension, which not every Python build allows.
    extensions: bool = False


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A product with the vectors that all get (`given`), or as installed, with its own model."""

    product: Product
    given: bool = True

    @property
    def name(self) -> str:
        return self.product.name if self.given else f"{self.product.name}-as-it-comes"

    @property
    def title(self) -> str:
        return self.product.title if self.given else f"{self.product.title} as installed"


PRODUCTS = (
    Product(
        name=OURS,
        title="Trivet",
        packages=(),
        setting='default recipe. With given vectors: `rerank="off"`, `changes="off"` (the others '
        "lack these models), `relevance_at_least=0`. As installed: all defaults",
    ),
    Product(
        name="lancedb",
        title="LanceDB hybrid",
        packages=("lancedb==0.40.0",),
        setting="native full-text index with its defaults, exact cosine, `RRFReranker()`, "
        "`limit(10)`; 20 was no better and 50 worse",
    ),
    Product(
        name="txtai",
        title="txtai hybrid",
        packages=("txtai==9.14.0", "torch==2.13.0"),
        setting="`hybrid=True, content=True`, external `transform`; saved in place after every "
        "write, as its manual shows. A kill during a save leaves an index that does not load",
    ),
    Product(
        name="mcp_memory_service",
        title="mcp-memory-service",
        packages=("mcp-memory-service==12.2.0",),
        setting="`retrieve_hybrid` on SQLite with `MCP_HYBRID_FUSION_METHOD=rrf` (nDCG@10 on "
        "LoCoMo with the default: .36); similar memories kept (`skip_semantic_dedup`)",
        extensions=True,
    ),
    Product(
        name="mempalace",
        title="MemPalace",
        packages=("mempalace==3.11.0",),
        setting="drawers in one wing and room, `search_memories` with "
        '`candidate_strategy="union"`, on Chroma',
    ),
    Product(
        name="mem0",
        title="mem0, no language model",
        packages=("mem0ai==2.2.1", "fastembed==0.9.1", "stop-words==2025.11.4"),
        setting="`infer=False`, local Qdrant with its BM25 (stop words from a package); spaCy's "
        "model is not on PyPI, so no lemmas and no entities",
    ),
    Product(
        name="langgraph",
        title="LangGraph SqliteStore",
        packages=("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"),
        setting='vectors of the field `text` (`index=["text"]` with each put), exact cosine',
        extensions=True,
    ),
    Product(
        name="chroma",
        title="Chroma",
        packages=("chromadb==1.5.9",),
        setting="`PersistentClient`, cosine distance, default HNSW; no local ranked search by "
        "words",
    ),
)
ARMS = (*(Arm(product=one) for one in PRODUCTS), Arm(product=PRODUCTS[0], given=False))

# Products and settings that could not be measured, and why.
LEFT_OUT: Mapping[str, str] = {
    "basic-memory": "needs Python 3.12 and an SQLite that loads extensions; cannot simply get the "
    "same vectors",
    "LanceDB and LangGraph as installed": "have no model of their own",
    "txtai, Chroma and MemPalace as installed": "download their model on first use",
    "mcp-memory-service as installed": "uses hashes instead of a model, or downloads one",
    "mem0 as installed": "needs keys for a language model and an embedder",
}
