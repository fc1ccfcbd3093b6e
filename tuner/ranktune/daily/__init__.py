"""Every day: a study is retuned on new data, and its versions are compared and chosen."""
