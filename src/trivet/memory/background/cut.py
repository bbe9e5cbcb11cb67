"""A memory as it is embedded: in passages, each under the memory's title."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trivet.memory.passages import cut
from trivet.store.records import Job, Passage

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder


class Cut(msgspec.Struct, frozen=True):
    """A job with the passages its memory is cut into."""

    job: Job
    passages: tuple[Passage, ...]

    @property
    def texts(self) -> list[str]:
        """What is embedded: each passage under its memory's title."""
        texts = (self.job.content[passage.start : passage.stop] for passage in self.passages)
        return [f"{self.job.title}\n{text}" if self.job.title else text for text in texts]


def cut_job(job: Job, embedder: Embedder) -> Cut:
    window = embedder.window
    if job.title:
        window = max(window // 2, window - embedder.count_tokens([job.title])[0])
    return Cut(job, cut(job.content, embedder.count_tokens, window))
