"""The HTTP API: a thin layer over the operations of the daemon. Imported when the first client speaks HTTP.

`listener` serves connections, `app` takes a request to its response, `routing` derives routes from `holdfast.ops`,
`routes/` has those with special ways, and `openapi` describes all of them. docs/http.md is the manual.
"""
