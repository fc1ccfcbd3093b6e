"""From a click log to judgments: click models by name, compared on later clicks and with judgments of people."""
