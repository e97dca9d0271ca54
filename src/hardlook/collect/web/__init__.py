"""The server: pages for participants, pages for researchers, and what keeps them safe."""
