"""Queries that have several right answers, or that the engine below answers otherwise, by name and reason."""

OTHER_ANSWERS: dict[int, str] = {}
