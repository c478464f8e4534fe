"""--prometheus: what agents write into their folders, as metrics that Prometheus asks for over HTTP."""
