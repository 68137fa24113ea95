"""Arguments that do not fit are named in a sentence of ours, never in pybind11's list of types."""

import inspect

import pytest

import hmc
from hmc import _core


@pytest.mark.parametrize("call, sentence", [
    (lambda node, peer: hmc.Node(name=5), "Node(): name is 5: pass a str, or None"),
    (lambda node, peer: hmc.Node(listen=5), "Node(): listen is 5: pass a str, or None"),
    (lambda node, peer: hmc.Node(lease="long"), "Node(): lease is 'long': pass a number, or None"),
    (lambda node, peer: hmc.Node("a"), "Node(): it takes 0 arguments without a name, not 1"),
    (lambda node, peer: hmc.Node(nam="a"), "Node(): there is no argument nam; there are name, "),
    (lambda node, peer: hmc.Pool(insecure="yes"), "Pool(): insecure is 'yes': pass True or False"),
    (lambda node, peer: node.connect(None), "connect(): address is None: pass a str"),
    (lambda node, peer: node.connect(), "connect(): address is missing"),
    (lambda node, peer: peer.open(5), "name is 5: pass a region's name, or a Grant or its bytes"),
    (lambda node, peer: hmc.ConnBuffer(0, "big"), "ConnBuffer(): "),
])
def test_names_the_argument_and_what_to_pass(call, sentence):
    with hmc.Node(listen="tcp://127.0.0.1:0") as owner, hmc.Node() as node:
        peer = node.connect(owner.address)
        with pytest.raises(TypeError) as error:
            call(node, peer)
        assert sentence in str(error.value)
        assert "incompatible" not in str(error.value)


def test_no_function_of_the_module_answers_in_words_of_pybind11():
    asked = 0
    for made in [one for one in vars(_core).values() if inspect.isclass(one)] + [_core]:
        for name, method in list(vars(made).items()):
            call = getattr(made, name)
            if not callable(method) or name.startswith("__") and name != "__init__":
                continue
            if inspect.isclass(call):
                continue
            asked += 1
            with pytest.raises(TypeError) as error:
                call(no_such_argument=1)
            assert "incompatible" not in str(error.value), (made, name)
            assert "argument types" not in str(error.value), (made, name)
    assert asked > 100


def test_none_means_that_nothing_is_said():
    with hmc.Node(name=None, secret=None, advertise=None, transports=None, lease=None) as node:
        assert node.name


def test_an_error_of_the_call_itself_stays_as_it_is():
    with hmc.Node() as node, pytest.raises(TypeError, match="nbytes is 'x': pass an integer"):
        node.allocate("x")
