"""Interleaving: two rankings in one list, of which clicks show the better one; judging and planning such tests."""

from ranktune.tuner.interleaving.judging import judge, plan
from ranktune.tuner.interleaving.lists import balanced, team_draft

__all__ = ["balanced", "judge", "plan", "team_draft"]
