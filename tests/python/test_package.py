"""The package for Python: arrays without copies, passes, remarks, sparse matrices, errors."""

import copy
import gc
import os
import pickle
import threading
import unittest

import numpy as np
from scipy import sparse

import apl

SOURCE = """
entry mm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =
  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A
entry two (x: i64) (xs: []i64) = (x + 1, map (+ x) xs)
entry same (xs: []f32) = xs
entry third (xs: []f32) = xs[2]
entry scalars (a: i8) (b: u64) (c: f16) (d: f64) (e: bool) = (a, b, c, d, !e)
entry pairs (ps: ([]f32, []i32)) = (ps.1, ps.0)
entry body (b: {mass: f32, place: [2]f32}) = map (* b.mass) b.place
entry flags (xs: []bool) = map (\\x -> !x) xs
#[sparse(A)]
entry spmm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =
  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A
#[sparse(A, result)]
entry doubled [n][m] (A: [n][m]f32) : [n][m]f32 = map (map (* 2)) A
"""


class Calls(unittest.TestCase):
    backend = "c"

    @classmethod
    def setUpClass(cls):
        cls.program = apl.compile(SOURCE, backend=cls.backend)

    def test_product(self):
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        b = np.ones((4, 2), dtype=np.float32)
        np.testing.assert_array_equal(self.program.mm(a, b), a @ b)

    def test_results_own_memory_of_the_program(self):
        xs = np.arange(1000, dtype=np.float32)
        program = apl.compile("entry twice (xs: []f32) = map (* 2) xs", backend=self.backend)
        ys = program.twice(xs)
        self.assertFalse(ys.flags.owndata)
        del program
        gc.collect()
        np.testing.assert_array_equal(ys, 2 * xs)
        ys[0] = 7  # it is the caller's

    def test_scalars_and_tuples(self):
        x, xs = self.program.two(40, np.array([1, 2, 3]))
        self.assertEqual((x, xs.tolist()), (41, [41, 42, 43]))
        self.assertEqual(self.program.scalars(-3, 2**64 - 1, 0.5, np.float64(1.25), np.bool_(True)),
                         (-3, 2**64 - 1, 0.5, 1.25, False))
        self.assertIs(type(self.program.scalars(0, 0, 0, 0, False)[4]), bool)
        with self.assertRaises(apl.ProgramError):
            self.program.scalars(128, 0, 0, 0, False)
        with self.assertRaises(apl.ProgramError):
            self.program.scalars(1.5, 0, 0, 0, False)

    def test_tuples_and_records_as_arguments(self):
        xs, ys = np.ones(3, np.float32), np.arange(2, dtype=np.int32)
        first, second = self.program.pairs((xs, ys))
        np.testing.assert_array_equal(first, ys)
        np.testing.assert_array_equal(second, xs)
        place = np.array([1, 2], np.float32)
        np.testing.assert_array_equal(self.program.body({"place": place, "mass": 3}), 3 * place)
        with self.assertRaises(TypeError):
            self.program.pairs(xs)

    def test_lists_and_arrays_that_are_not_contiguous(self):
        np.testing.assert_array_equal(self.program.same([1, 2.5]), np.array([1, 2.5], np.float32))
        grid = np.arange(12, dtype=np.float32).reshape(3, 4)
        np.testing.assert_array_equal(self.program.same(grid[:, 1]), grid[:, 1])
        np.testing.assert_array_equal(self.program.same(grid.ravel()[::-2]), grid.ravel()[::-2])
        np.testing.assert_array_equal(self.program.flags(np.array([True, False])), [False, True])
        frozen = grid.ravel().copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(self.program.same(frozen), frozen)
        self.assertEqual(self.program.same(np.zeros(0, np.float32)).shape, (0,))

    def test_errors(self):
        with self.assertRaises(apl.ProgramError) as caught:
            self.program.third(np.zeros(2, np.float32))
        self.assertEqual(caught.exception.code, "run.index-out-of-bounds")
        self.assertEqual(caught.exception.place.line, 6)
        with self.assertRaises(apl.ProgramError) as caught:
            self.program.same(np.zeros(2))
        self.assertEqual(caught.exception.code, "run.argument")
        self.assertIn("argument `xs` of entry `same`", str(caught.exception))
        with self.assertRaises(apl.ProgramError):
            self.program.same(np.zeros((2, 2), np.float32))
        with self.assertRaises(apl.ProgramError):
            self.program.same(object())
        with self.assertRaises(TypeError):
            self.program.same()
        with self.assertRaises(AttributeError):
            self.program.nothing
        # It goes on after errors.
        self.assertEqual(self.program.third(np.arange(3, dtype=np.float32)), 2)

    def refused(self, text, entry, *arguments):
        with self.assertRaisesRegex(apl.ProgramError, text) as caught:
            self.program.call(entry, *arguments)
        self.assertEqual(caught.exception.code, "run.argument")

    def test_arrays_of_every_kind(self):
        f32 = np.float32
        xs = np.arange(3, dtype=f32)
        locked = xs.copy()
        locked.flags.writeable = False
        fields = np.zeros(3, dtype=[("a", "i4"), ("b", "f4")])
        fields["b"] = xs
        shifted = np.zeros(13, dtype=np.uint8)[1:].view(f32)
        shifted[:] = xs
        for array in (locked, np.arange(6, dtype=f32)[::2] / 2, xs[::-1][::-1], fields["b"], memoryview(xs), shifted):
            np.testing.assert_array_equal(self.program.same(array), xs)
        np.testing.assert_array_equal(self.program.same(np.broadcast_to(f32(2), (3,))), [2, 2, 2])
        for shape in ((0, 3), (3, 0)):
            product = self.program.mm(np.zeros(shape, f32), np.zeros(shape[::-1], f32))
            np.testing.assert_array_equal(product, np.zeros((shape[0], shape[0])))
        a = np.asfortranarray(np.arange(6, dtype=f32).reshape(2, 3))
        np.testing.assert_array_equal(self.program.mm(a, a.T), a @ a.T)

        self.refused("a masked array", "same", np.ma.masked_array(xs, mask=[0, 1, 0]))
        self.refused("a masked array", "same", np.ma.masked_array(xs))
        self.refused("a masked array", "two", np.ma.masked, np.arange(3))
        self.refused("a masked array", "spmm", np.ma.masked_array(np.eye(3, dtype=f32)), np.eye(3, dtype=f32))
        self.refused("ndarray of dtype object", "same", xs.astype(object))
        self.refused("ndarray of dtype >f4", "same", xs.astype(">f4"))
        self.refused("ndarray of dtype complex64", "same", xs.astype(np.complex64))
        self.refused("ndarray of dtype datetime64", "same", np.arange(3).astype("datetime64[s]"))
        self.refused("ndarray of dtype <U1", "same", np.array(["a"]))
        self.refused("an array of 1 dims of f64", "same", xs.astype(np.float64))
        self.refused("an array of 0 dims", "same", np.array(3, f32))
        self.refused("an array of 1 dims of u8", "same", b"abcd")
        for other in (None, "abc", 3.0, (1, 2), {"a": 1}, object()):
            self.refused("no array that apl can read: " + type(other).__name__, "same", other)

    def test_numbers_of_every_kind(self):
        for number in (2**31, -(2**70)):
            self.refused("a number that i8 cannot hold", "scalars", number, 0, 0, 0, False)
        for other in (1.0, "1", None, 1j, [1], np.float32(1), np.arange(2)):
            self.refused("a number of type i8 is wanted", "scalars", other, 0, 0, 0, False)
        self.refused("a number that u64 cannot hold", "scalars", 0, -1, 0, 0, False)
        for other in ("1.5", None, 1j, [1.0]):
            self.refused("a number of type f64 is wanted", "scalars", 0, 0, 0, other, False)
        self.refused("a number that f64 cannot hold", "scalars", 0, 0, 0, 10**400, False)
        for other in (1, "x", None):
            self.refused("a number of type bool is wanted", "scalars", 0, 0, 0, 0, other)
        self.assertEqual(self.program.scalars(np.array(4), True, 1, np.int8(2), np.bool_(False)), (4, 1, 1, 2, True))

    def test_lists(self):
        self.assertEqual(self.program.two(1, [1, True])[1].tolist(), [2, 2])
        self.assertEqual(self.program.same([]).tolist(), [])
        with self.assertRaisesRegex(TypeError, "argument xs of entry two: elements of float64 are no i64"):
            self.program.two(1, [1.5])
        with self.assertRaises(OverflowError):
            self.program.two(1, [2**63])
        with self.assertRaises(TypeError):
            self.program.flags([1, 0])

    def test_matrices_of_every_kind(self):
        b = np.ones((3, 2), dtype=np.float32)
        for matrix in (sparse.coo_array(([1, 2, 3.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 3)),
                       sparse.csc_array(np.triu(np.ones((3, 3)))), sparse.csr_array((3, 3)),
                       sparse.csr_array(np.eye(3, dtype=np.int64))):
            np.testing.assert_array_equal(self.program.spmm(matrix, b), matrix @ b)
        with self.assertRaisesRegex(TypeError, "elements of complex128 are no f32"):
            self.program.spmm(sparse.csr_array(np.eye(3) * 1j), b)
        with self.assertRaisesRegex(ValueError, "2 dims, not 1"):
            self.program.spmm(sparse.coo_array(np.ones(3)), b)
        with self.assertRaisesRegex(ValueError, "columns at most"):
            self.program.spmm(sparse.csr_array((1, 2**31)), b)
        with self.assertRaisesRegex(AttributeError, "no entry 'none'; it has mm"):
            self.program.matrix("none", "A", sparse.eye_array(3))
        with self.assertRaises(apl.ProgramError):
            self.program.matrix("spmm", "none", sparse.eye_array(3, format="csr"))

    def test_sparse(self):
        rng = np.random.default_rng(1)
        dense = (rng.random((40, 30)) < 0.2) * rng.integers(1, 5, (40, 30)).astype(np.float32)
        b = rng.integers(-3, 4, (30, 64)).astype(np.float32)
        for matrix in (sparse.csr_array(dense), sparse.csc_matrix(dense), sparse.coo_array(dense), dense):
            np.testing.assert_array_equal(self.program.spmm(matrix, b), dense @ b)
        twice = self.program.doubled(sparse.csr_array(dense))
        self.assertTrue(sparse.issparse(twice))
        np.testing.assert_array_equal(twice.toarray(), 2 * dense)
        np.testing.assert_array_equal(self.program.doubled(dense), 2 * dense)
        # Rows whose columns do not rise, and with duplicates.
        mixed = sparse.csr_array((np.array([1, 2, 3, 4], np.float32), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
        np.testing.assert_array_equal(self.program.spmm(mixed, np.eye(3, dtype=np.float32)), mixed.toarray())

    def test_search_and_multiply(self):
        rng = np.random.default_rng(2)
        matrix = sparse.random_array((300, 200), density=0.05, rng=rng, format="csr", dtype=np.float32)
        matrix.data = rng.integers(1, 5, matrix.nnz).astype(np.float32)
        plan = apl.search(matrix, 32, seconds=2)
        self.assertIn("<pre>", plan._repr_html_())
        program = apl.compile(SOURCE, backend=self.backend)
        if "form dense" not in plan:
            program.set_plan("A", plan)
        operand = program.matrix("spmm", "A", matrix)
        self.assertEqual((operand.shape, operand.nnz), ((300, 200), matrix.nnz))
        for _ in range(3):
            b = rng.integers(-3, 4, (200, 32)).astype(np.float32)
            np.testing.assert_array_equal(program.spmm(operand, b), matrix @ b)
        if "form dense" not in plan:
            with self.assertRaises(apl.ProgramError):  # a plan for another matrix
                program.matrix("spmm", "A", matrix[:, :100].tocsr())
        with self.assertRaises(apl.ProgramError):
            program.doubled(operand)  # made for another operand
        with self.assertRaises(apl.CommandError):
            apl.search(matrix, 32, operation="spmv")

    def test_threads(self):
        xs = np.arange(100, dtype=np.float32)
        wrong = []

        def work():
            for _ in range(50):
                if not (self.program.same(xs) == xs).all():
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Addresses(unittest.TestCase):
    """Backend "c" reads arrays where they are."""

    def test_arguments(self):
        program = apl.compile(SOURCE)
        xs = np.arange(10, dtype=np.float32)
        self.assertEqual(program.addresses("same", xs), [xs.ctypes.data])
        self.assertEqual(program.addresses("same", xs[3:]), [xs.ctypes.data + 12])

        class Wrapped:  # anything with DLPack
            def __dlpack__(self, **arguments):
                return xs.__dlpack__(**arguments)

            def __dlpack_device__(self):
                return xs.__dlpack_device__()

        self.assertEqual(program.addresses("same", Wrapped()), [xs.ctypes.data])
        np.testing.assert_array_equal(program.same(Wrapped()), xs)
        # What was changed is read at the next call.
        xs[0] = 5
        self.assertEqual(program.same(xs)[0], 5)
        # A result is an argument.
        ys = program.same(xs)
        self.assertEqual(program.addresses("same", ys), [ys.ctypes.data])
        self.assertEqual(program.addresses("two", 1, np.arange(3))[0], 0)

    def test_emulation_copies(self):
        program = apl.compile(SOURCE, backend="emulate")
        self.assertEqual(program.addresses("same", np.arange(3, dtype=np.float32)), [0])

    def test_results_by_dlpack(self):
        program = apl.compile(SOURCE)
        raw = program._raw.call("same", [np.arange(3, dtype=np.float32)], apl._apl.Like.dlpack, True)[0]
        first, second = np.from_dlpack(raw), np.from_dlpack(raw)
        self.assertEqual(first.ctypes.data, second.ctypes.data)
        self.assertEqual(first.ctypes.data % 64, 0)


class Emulated(Calls):
    backend = "emulate"


class Passes(unittest.TestCase):
    def test_a_pass_in_python_changes_the_ir(self):
        compiler = apl.Compiler()
        seen = []

        def double_it(module, remark, by):
            seen.append((module.stage, by))
            for statement in module.statements:
                if statement.operation == "size":
                    remark("a size was found", code="found", line=statement.line)
            return module.ir.replace("size(x + 1)", f"size({by} * x + 1)")

        compiler.add_pass("double-it", double_it, summary="for a test", stages=["soac"], options={"by": 2})
        self.assertEqual(compiler.passes["double-it"], "for a test")
        module = compiler.parse("entry main (x: i64) = x + 1")
        module.run("double-it{by=3},simplify")
        self.assertEqual(module.interpret("main", 5), 16)
        self.assertEqual(seen, [("soac", 3)])
        found = [r for r in module.remarks if r.pass_name == "double-it"]
        self.assertEqual([(r.kind, r.code, r.message, r.line) for r in found],
                         [("applied", "found", "a size was found", 1)])
        compiler.insert("start", "double-it")
        self.assertTrue(compiler.standard_pipeline().startswith("double-it,inline"))
        self.assertEqual(compiler.compile("entry main (x: i64) = x + 1").main(5), 11)

    def test_a_pass_that_fails(self):
        compiler = apl.Compiler()

        def broken(module, remark):
            raise KeyError("from a pass")

        def wrong(module, remark):
            return module.ir.replace("size(x + 1)", "size(y + 1)")

        compiler.add_pass("broken", broken)
        compiler.add_pass("wrong", wrong)
        module = compiler.parse("entry main (x: i64) = x + 1")
        before = module.ir
        with self.assertRaisesRegex(KeyError, "from a pass"):
            module.run("broken")
        with self.assertRaises(apl.ProgramError):
            module.run("wrong")
        self.assertEqual(module.ir, before)
        with self.assertRaises(apl.CommandError):
            module.run("no-such-pass")
        with self.assertRaises(apl.CommandError):
            compiler.add_pass("fuse", broken)

    def test_what_passes_are_made_of(self):
        compiler = apl.Compiler()
        with self.assertRaisesRegex(apl.CommandError, "no stage `attic`"):
            compiler.add_pass("p", lambda module, remark: None, stages=["attic"])
        for value in (1.5, None, 2**80):
            with self.assertRaisesRegex(apl.CommandError, "an option is"):
                compiler.add_pass("p", lambda module, remark, x: None, options={"x": value})
        # One that runs others, and one whose compiler is gone.
        compiler.add_pass("simpler", lambda module, remark: (module.run("simplify"), remark("done"))[1])
        module = compiler.parse("entry main (x: i64) = x + 0")
        del compiler
        gc.collect()
        module.run("simpler")
        self.assertEqual([r.message for r in module.remarks], ["done"])
        self.assertNotIn("+", module.ir)

    def test_threads_that_share_a_compiler(self):
        compiler = apl.Compiler()
        compiler.add_pass("say", lambda module, remark: remark("said"))
        compiler.insert("start", "say")
        wrong = []

        def work(number):
            try:
                for _ in range(5):
                    compiler.parse(f"entry main (x: i64) = x + {number}").run("kernel")
                    compiler.add_pass(f"pass-{number}-{_}", lambda module, remark: None)
                    self.assertIn("say", compiler.passes)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_modules(self):
        module = apl.parse(SOURCE)
        again = apl.parse(module.ir)
        self.assertEqual(again.ir, module.ir)
        self.assertEqual(list(module.entries), list(again.entries))
        self.assertEqual(module.entries["mm"].inputs[0], apl.ValueType("f32", 2, False, None, "A", ("n", "m")))
        self.assertEqual(module.entries["body"].params[0].values, 2)
        lowered = module.copy().run("kernel")
        self.assertEqual((module.stage, lowered.stage), ("soac", "kernel"))
        self.assertTrue(any(r.pass_name == "tile-contraction" and r.kind == "applied" for r in lowered.remarks))
        self.assertIn("tile_contract", {s.operation for s in lowered.statements})
        with self.assertRaises(apl.ProgramError):
            module.ir = "stage soac\nrubbish"
        a = np.eye(2, dtype=np.float32)
        np.testing.assert_array_equal(lowered.interpret("mm", a, 2 * a), 2 * a)

    def test_texts(self):
        module = apl.parse(SOURCE, name="test.fut")
        self.assertIn("apl_entry_mm", module.emit("c"))
        self.assertIn("__global__", module.kernel("mm", sizes={"n": 64}))
        source, header, manifest = module.library("test")
        self.assertIn("futhark_entry_mm", header)
        said = module.explain({"n": 512, "m": 512, "k": 512})
        self.assertIn("mm on cpu", said)
        self.assertIn("packed for a micro-kernel", said._repr_html_())
        self.assertIn("srcdoc", module.report()._repr_html_())
        self.assertIn("<html", module.report())

    def test_errors(self):
        with self.assertRaises(apl.ProgramError) as caught:
            apl.compile("entry f (x: i32) = x +\n  y\n", name="wrong.fut")
        error = caught.exception
        self.assertEqual((error.code, error.fault), ("type.unknown-name", 2))
        self.assertEqual(str(error.place), "wrong.fut:2:3")
        self.assertIn("wrong.fut:2:3: error: ", str(error))
        with self.assertRaises(apl.CommandError):
            apl.compile("entry f (x: i32) = x", backend="abacus")
        with self.assertRaises(apl.CommandError):
            apl.Compiler(device="abacus")
        # A driver that is loaded already would be found again.
        if "APL_TEST_DRIVER" not in os.environ and not any(os.path.exists(p) for p in ("/dev/nvidia0", "/dev/nvidiactl")):
            with self.assertRaises(apl.LimitationError) as caught:
                apl.compile("entry f (xs: []i32) = map (+ 1) xs", backend="cuda")
            self.assertEqual(caught.exception.code, "unsupported.backend")

    def test_errors_are_pickled_and_copied(self):
        def raised(call):
            with self.assertRaises(apl.Error) as caught:
                call()
            return caught.exception

        program = apl.compile(SOURCE)
        errors = [
            raised(lambda: apl.compile("entry f (x: i32) = x +\n  y\n", name="wrong.fut")),
            raised(lambda: apl.compile("entry f (x: i32) = x", backend="abacus")),
            raised(lambda: program.third(np.zeros(2, np.float32))),
        ]
        others = (apl.LimitationError, apl.BugError, apl.MachineError)
        errors += [type_(errors[0].diagnostics) for type_ in others]
        for error in errors:
            error.add_note("in a worker")
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                self.assertIs(type(other), type(error))
                self.assertEqual(other, error)
                self.assertEqual(hash(other), hash(error))
                self.assertEqual((str(other), other.code, other.place), (str(error), error.code, error.place))
                self.assertEqual(other.__notes__, ["in a worker"])
        self.assertNotEqual(errors[0], errors[1])

    def test_copies_of_programs(self):
        program = apl.compile("entry twice (xs: []f32) = map (* 2) xs")
        for other in (copy.copy(program), copy.deepcopy([program])[0]):
            self.assertEqual(other.twice([1.5]).tolist(), [3])
        with self.assertRaisesRegex(TypeError, "compile it in each process"):
            pickle.dumps(program)
        with self.assertRaisesRegex(AttributeError, "no entry 'none'"):
            apl.Program.__new__(apl.Program).none

    def test_arrays_of_another_element_type(self):
        program = apl.compile(SOURCE)
        with self.assertRaises(apl.ProgramError) as caught:
            program.same(np.zeros(3))
        self.assertEqual(caught.exception.hint, "write `xs.astype(numpy.float32)`")
        self.assertIn("hint: write `xs.astype(numpy.float32)`", str(caught.exception))
        with self.assertRaises(apl.ProgramError) as caught:
            program.flags(np.zeros(3, np.int8))
        self.assertEqual(caught.exception.hint, "write `xs.astype(numpy.bool_)`")
        # Another rank is another fault.
        with self.assertRaises(apl.ProgramError) as caught:
            program.same(np.zeros((3, 3)))
        self.assertEqual(caught.exception.hint, "")

    def test_tensors_that_require_gradients(self):
        class Tensor:
            requires_grad = True

            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        xs = Tensor(np.arange(3, dtype=np.float32))
        program = apl.compile(SOURCE)
        with self.assertRaisesRegex(apl.ProgramError, "call `.detach\\(\\)`"):
            program.same(xs)
        xs.requires_grad = False
        self.assertEqual(program.same(xs).tolist(), [0, 1, 2])


class Cuda(unittest.TestCase):
    """Backend "cuda" over a driver that emulates it, if there is one in APL_TEST_DRIVER."""

    def setUp(self):
        folder = os.environ.get("APL_TEST_DRIVER")
        if not folder:
            self.skipTest("APL_TEST_DRIVER names no folder with a driver")
        self.program = apl.compile(SOURCE, backend="cuda", cuda_folders=[folder])

    def test_device_arrays(self):
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        first = self.program.same(a.ravel())
        self.assertEqual(first.__dlpack_device__()[0], 2)  # kDLCUDA

        # What one call gave is read by the next where it is.
        where = self.program.addresses("same", first)[0]
        self.assertNotEqual(where, 0)
        self.assertEqual(self.program.third(first), 2)

        class Interface:  # as Numba has it
            __cuda_array_interface__ = {"shape": (6,), "typestr": "<f4", "data": (where, False), "version": 3}

        self.assertEqual(self.program.addresses("same", Interface()), [where])
        self.assertEqual(self.program.third(Interface()), 2)
        self.assertEqual(self.program.addresses("same", a.ravel()), [0])  # host memory is copied

        # The same with strides, and what is no such array.
        def interface(**parts):
            whole = {"shape": (6,), "typestr": "<f4", "data": (where, False), "version": 3, **parts}
            return type("Other", (), {"__cuda_array_interface__": whole})()

        self.assertEqual(self.program.third(interface(strides=(4,))), 2)
        for text, parts in (("elements >f4", {"typestr": ">f4"}), ("elements <f3", {"typestr": "<f3"}),
                            ("has a mask", {"mask": 1}), ("not contiguous", {"strides": (8,)}),
                            ("not contiguous", {"strides": (-4,)}), ("without memory", {"data": (0, False)}),
                            ("negative size", {"shape": (-1,)}), ("does not describe", {"data": None}),
                            ("does not describe", {"shape": 6}), ("does not describe", {"typestr": 4})):
            with self.assertRaisesRegex(apl.ProgramError, text):
                self.program.third(interface(**parts))
        for whole in (None, 5, {}):
            with self.assertRaisesRegex(apl.ProgramError, "does not describe an array"):
                self.program.third(type("Other", (), {"__cuda_array_interface__": whole})())
        self.program.same(first, wait=False)
        self.program.wait()


if __name__ == "__main__":
    unittest.main()
