"""Where machine code is kept: in the user's cache folder, which begins with what the package was built with."""
