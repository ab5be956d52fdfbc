"""The HTTP API: a thin layer over the daemon's handlers. Imported when the first client speaks HTTP, not before.

`door` serves connections, `app` takes a request from the guard to the answer, `table` and `routes/` say what there is,
`openapi` tells it to others. docs/http.md is its manual.
"""
