"""Studies as tables and pages; nothing here runs a study."""
