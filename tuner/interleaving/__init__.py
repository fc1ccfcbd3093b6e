"""Interleaving: two rankings in one list, of which clicks show the better one; judging and planning such tests."""

from ranktune.tuner.interleaving.judging import judge
from ranktune.tuner.interleaving.lists import balanced, team_draft
from ranktune.tuner.interleaving.planning import plan

__all__ = ["balanced", "judge", "plan", "team_draft"]
