"""python -m ranktune: the same as the command ranktune."""

from ranktune.cli import main

main()
