"""The network engine, on Zenoh: a star of a server and its clients, and graphs of peers, over mutual TLS.

Every message is a question and its answer, so that whoever asks knows that it arrived; a question that gets no answer
is asked again with the same number, and whoever is asked repeats what it said. There are no subscriptions that somebody
could listen in on, and who may ask whom is bound to the names on certificates.
"""
