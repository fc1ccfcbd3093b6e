"""What a person looks at: finished records as tables and pages. Nothing here runs a study."""
