"""The declaration of a study and its folder."""
