"""A client that offers a server's verbs over HTTP as if the store were local."""
