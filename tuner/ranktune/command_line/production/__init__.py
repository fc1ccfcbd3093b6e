"""Commands for models in production: retuning every day, and the history of a study."""
