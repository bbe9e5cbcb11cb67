"""Who is measured, with which versions and settings, and who is not and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OURS = "trivet"


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product with a driver of its name. `packages` are what its environment gets; Trivet runs in this one."""

    name: str
    title: str
    packages: tuple[str, ...]
    setting: str
    # It loads an extension into SQLite, which not every build of Python allows.
    extensions: bool = False


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A product with the vectors that all get (`given`), or as it comes, with its own model."""

    product: Product
    given: bool = True

    @property
    def name(self) -> str:
        return self.product.name if self.given else f"{self.product.name}-as-it-comes"

    @property
    def title(self) -> str:
        return self.product.title if self.given else f"{self.product.title} as it comes"


PRODUCTS = (
    Product(
        name=OURS,
        title="Trivet",
        packages=(),
        setting='the default recipe. With given vectors `rerank="off"` and `changes="off"` (what reads hits again and '
        "what tells changed facts are models of its own, and the others have none) and `relevance_at_least=0`, so that "
        "it shows ten hits as they do. As it comes: all defaults, with all models inside",
    ),
    Product(
        name="lancedb",
        title="LanceDB hybrid",
        packages=("lancedb==0.40.0",),
        setting="native full-text index (English, stemmed, without stop words: its defaults), exact cosine, "
        "`RRFReranker()`, `limit(10)`; a limit of 20 was no better and one of 50 worse on a quarter of LoCoMo",
    ),
    Product(
        name="txtai",
        title="txtai hybrid",
        packages=("txtai==9.14.0", "torch==2.13.0"),
        setting="`hybrid=True, content=True` with an external `transform`; saved after every write, in place, as "
        "its manual shows: a kill within a save leaves an index that does not load",
    ),
    Product(
        name="mcp_memory_service",
        title="mcp-memory-service",
        packages=("mcp-memory-service==12.2.0",),
        setting="SQLite storage, `retrieve_hybrid` with `MCP_HYBRID_FUSION_METHOD=rrf`, which answered better than the "
        "default (weights; recall@5 .42 and nDCG@10 .36 on LoCoMo); similar memories are kept (`skip_semantic_dedup`)",
        extensions=True,
    ),
    Product(
        name="mempalace",
        title="MemPalace",
        packages=("mempalace==3.11.0",),
        setting='drawers in one wing and room, `search_memories` with `candidate_strategy="union"`, Chroma beneath',
    ),
    Product(
        name="mem0",
        title="mem0, no language model",
        packages=("mem0ai==2.2.1", "fastembed==0.9.1", "stop-words==2025.11.4"),
        setting="`infer=False`, Qdrant's local mode with its BM25 (stop words from a package, since its own are "
        "downloaded); without spaCy's model, which is not on PyPI, so nothing is lemmatised and no entities are found",
    ),
    Product(
        name="langgraph",
        title="LangGraph SqliteStore",
        packages=("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"),
        setting='vectors of the field `text` (`index=["text"]` with each put: `fields` of the configuration is not '
        "read), exact cosine",
        extensions=True,
    ),
    Product(
        name="chroma",
        title="Chroma",
        packages=("chromadb==1.5.9",),
        setting="`PersistentClient`, a collection with cosine distance, HNSW as configured by default; it has no "
        "search by words that ranks locally",
    ),
)
ARMS = (*(Arm(product=one) for one in PRODUCTS), Arm(product=PRODUCTS[0], given=False))

# Whom it was not possible to measure, or not in this way.
LEFT_OUT: Mapping[str, str] = {
    "basic-memory": "needs Python 3.12 or newer with an SQLite that loads extensions; it indexes Markdown files by a "
    "sync of its own and embeds with a model that it downloads, so the same vectors cannot be given to it simply",
    "LanceDB and LangGraph as they come": "have no model of their own",
    "txtai, Chroma and MemPalace as they come": "download their model (all-MiniLM-L6-v2 in txtai and Chroma) when they "
    "are first used",
    "mcp-memory-service as it comes": "has hashes in the place of a model when it is installed plainly, of which it "
    "warns itself; with its extras it downloads one",
    "mem0 as it comes": "needs the key of a language model and of an embedder",
}
