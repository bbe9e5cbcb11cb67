"""The embedding models a store knows, and which passages each has made."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.errors import EmbedderError
from trivet.store.base import Model, Passage
from trivet.store.relational.changes import MODELS, Changes
from trivet.store.relational.database import Connection, Database
from trivet.store.relational.rows import as_json


class Models:
    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._sql = database.sql("vectors")
        self._models: tuple[int, tuple[Model, ...]] | None = None  # as of which change

    def models(self) -> tuple[Model, ...]:
        known = self._models
        last = self._changes.last()
        changed = self._changes.since(known[0]) if known else None
        if known is None or changed is None or any(key == MODELS for _, key in changed):
            with self._database.errors():
                known = (last, self._stored(self._database.read()))
        self._models = (last, known[1])
        return known[1]

    def adopt(self, identity: str, spec: str, dimension: int) -> Model:
        """The model of that identity, made known if it is new. The first serves at once; a later one fills up first."""
        with self._database.write() as connection:
            known = {model.identity: model for model in self._stored(connection)}
            if identity in known:
                return self._known(connection, spec, dimension, known[identity])
            values = {"identity": identity, "spec": spec, "dimension": dimension, "serving": not known}
            number = int(connection.execute(self._sql["insert_model"], values).fetchone()[0])
            connection.execute(connection.sql("jobs")["enqueue_model"], {"model": number})
            connection.note_change(MODELS)
        return Model(number, identity, spec, dimension, not known)

    def serve(self, model: Model) -> None:
        """Lets a filled model answer and drops the vectors of the others."""
        with self._database.write() as connection:
            connection.execute(self._sql["serve_model"], {"model": model.model})
            for other in self._stored(connection):
                if other.model != model.model:
                    connection.execute(self._sql["delete_model"], {"model": other.model})
            connection.note_change(MODELS)

    def remove(self, model: Model) -> None:
        """Drops a model with its vectors and jobs."""
        with self._database.write() as connection:
            connection.execute(self._sql["delete_model"], {"model": model.model})
            connection.note_change(MODELS)

    def spans(self, model: Model, ids: Sequence[str]) -> dict[str, tuple[Passage, ...]]:
        with self._database.errors():
            parameters = {"model": model.model, "ids": as_json(ids)}
            rows = self._database.read().execute(self._sql["spans"], parameters).fetchall()
        spans: dict[str, list[Passage]] = {}
        for row in rows:
            spans.setdefault(row[0], []).append(Passage(row[1], row[2], row[3]))
        return {id: tuple(passages) for id, passages in spans.items()}

    def _stored(self, connection: Connection) -> tuple[Model, ...]:
        rows = connection.execute(self._sql["models"]).fetchall()
        return tuple(Model(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows)

    def _known(self, connection: Connection, spec: str, dimension: int, model: Model) -> Model:
        if model.dimension != dimension:
            raise EmbedderError(
                f"{model.identity} now makes vectors of {dimension} dimensions, and the stored ones have "
                f"{model.dimension}. Name the model that made them, or run `trivet reindex --vectors`."
            )
        if model.spec != spec:
            connection.execute(self._sql["update_spec"], {"spec": spec, "model": model.model})
            connection.note_change(MODELS)
        return model
