"""What models become where they are served: copies that systems can load."""
