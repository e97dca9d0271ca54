"""Collecting from people: clicks on objects, reviews of candidate images, ratings of similarity.

`study` is a study on disk, `store` what people answered in a database, `web` the pages and the server, `results` what
comes out of it all. `store` and `web` need the extra `web`.
"""
