from holdfast.cli.options import Verb

VERB = Verb("service", synopsis=["service install"], summary="x", about="x", examples=[("a", "b"), ("a", "b")])
