"""How is a function compiled that only compiled code calls? As a part of its callers.

Numba optimises every function, makes machine code and a wrapper for Python of it, and
does the first two again in each of its callers, whose machine code is what runs. For
functions that Python does not call itself we stop before the first: their callers
optimise them. That takes a quarter to a third off the time of a first fit. What else is
needless, for short functions that become one, is left out as well.
"""

import threading
from typing import Any

from llvmlite import binding
from numba.core import config, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typed_passes import NopythonRewrites
from numba.core.types.misc import unliteral
from numba.core.untyped_passes import InlineClosureLikes

from maxmargin._contexts import quick_target, quick_types

# Compiled code has no closures, and no arithmetic of whole arrays.
NEEDLESS = {InlineClosureLikes, NopythonRewrites}
FOR_CALLERS = "for callers"  # what a file of the cache holds, in place of machine code


class _Asked(threading.local):
    by_python = False  # whoever asks for a function now is Python, not its caller


_asked = _Asked()


class _Code(JITCodeLibrary):
    """A function and all that it calls, optimised together at the end."""

    is_unrolled = True

    def _optimize_functions(self, module: Any) -> None:
        """Only make them small: they become a part of others, which are optimised."""
        module.data_layout = self._codegen._data_layout
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.run(module, self._codegen._pass_builder())

    def _optimize_final_module(self) -> None:
        """As Numba does it, except for the unrolling of loops."""
        if self.is_unrolled or config.OPT == 0:
            super()._optimize_final_module()
            return
        tuning = binding.create_pipeline_tuning_options(int(config.OPT))
        tuning.loop_vectorization = bool(config.LOOP_VECTORIZE)
        tuning.slp_vectorization = bool(config.SLP_VECTORIZE)
        tuning.loop_unrolling = False
        builder = binding.create_pass_builder(self._codegen._tm, tuning)
        early = binding.create_new_module_pass_manager()
        early.add_loop_rotate_pass()
        early.add_instruction_combine_pass()
        early.add_jump_threading_pass()
        early.add_refprune_pass()
        early.run(self._final_module, builder)
        builder.getModulePassManager().run(self._final_module, builder)


class _CompactCode(_Code):
    """The same, with loops as they are: much less code for LLVM to improve and emit."""

    is_unrolled = False


class _CodeForCallers(_Code):
    """What callers link to; there is no machine code of its own."""

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment(self._codegen)

    def _optimize_final_module(self) -> None:
        """That is left to callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        bitcode = self._get_module_for_linking().as_bitcode()
        return self.name, FOR_CALLERS, bitcode


class _WithoutEnvironment:
    """A code generator that is not told where a function's constants are.

    Only the machine code of its callers could know.
    """

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it: see `_set_environments`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class _QuickFlags(Flags):
    """Flags that are compared by what is set, not by all that could be.

    Numba looks up the type of every call under the flags of its function, and would
    list all options for each look: a tenth of the time of a compilation.
    """

    __slots__: list[str] = []
    _hash = hash(Flags())

    def __hash__(self) -> int:
        return self._hash  # Numba's own hash is one of the options' names

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return NotImplemented
        own, others = self._values, other._values
        return own == others or all(
            getattr(self, name) == getattr(other, name) for name in own.keys() | others
        )


class CalleeCompiler(Compiler):
    """Numba's pipeline; without a wrapper, it makes code for callers."""

    code: type[_Code] = _Code

    def __init__(
        self,
        typing_context: Any,
        target_context: Any,
        library: Any,
        arguments: Any,
        return_type: Any,
        flags: Any,
        local_types: Any,
    ) -> None:
        if library is None:
            kind = _CodeForCallers if flags.no_cpython_wrapper else self.code
            library = kind(target_context.codegen(), "maxmargin")
            library.enable_object_caching()
        target_context.refresh()
        super().__init__(
            quick_types(typing_context),
            quick_target(target_context),
            library,
            arguments,
            return_type,
            flags,
            local_types,
        )

    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            kept = [step for step in pipeline.passes if step[0] not in NEEDLESS]
            pipeline.passes[:] = kept
        return pipelines


class CompactCompiler(CalleeCompiler):
    """The same, whose loops are not unrolled."""

    code = _CompactCode


def compile_as_asked(compiled: Any, has_wrapper: dict[Any, bool]) -> None:
    """Make a wrapper, and machine code, only of what Python asks for.

    `has_wrapper` is told which types of arguments have one. A function that Python
    calls after its callers did, with the same types, is compiled again.
    """
    compile_types, compiler = compiled.compile, compiled._compiler
    compile_for_arguments = compiled._compile_for_args

    def compile_for_python(*arguments: Any, **named: Any) -> Any:
        _asked.by_python = True
        try:
            return compile_for_arguments(*arguments, **named)
        finally:
            _asked.by_python = False

    def compile_types_as_asked(sig: Any) -> Any:
        is_wanted, _asked.by_python = _asked.by_python, False
        with global_compiler_lock:
            # A number that stands in a call is no type of its own.
            arguments = sigutils.normalize_signature(sig)[0]
            types = tuple(unliteral(kind) for kind in arguments)
            if is_wanted and not has_wrapper.get(types, True):
                del compiled.overloads[types]
            if types not in compiled.overloads:
                has_wrapper[types] = compiler.has_wrapper = is_wanted
            return compile_types(types)

    def customize_flags(flags: Any) -> Any:
        flags.no_cfunc_wrapper = True
        flags.no_cpython_wrapper = not compiler.has_wrapper
        return _QuickFlags(flags)

    def add_overload(result: Any) -> None:
        types = tuple(result.signature.args)
        if has_wrapper[types]:
            _set_environments(result)
            compiled._insert([t._code for t in types], result.entry_point, False)
        compiled.overloads[types] = result

    compiled._compile_for_args = compile_for_python
    compiled.compile, compiled.add_overload = compile_types_as_asked, add_overload
    compiler._customize_flags = customize_flags


def _set_environments(result: Any) -> None:
    """Tell machine code where the constants of the functions in it are."""
    if result.library._final_module is not None:
        for environment in result._find_referenced_environments():
            result.codegen.set_env(environment.env_name, environment)


def callee_rebuilt(target_context: Any, kept: Any) -> Any:
    """A function for callers, as a file of the cache keeps it; None: something else."""
    (name, kind, bitcode), descriptor, environment, signature, *_ = kept
    if kind != FOR_CALLERS:
        return None
    library = _CodeForCallers(target_context.codegen(), name)
    library._final_module = binding.parse_bitcode(bitcode)
    library._finalize_final_module()
    return compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        library=library,
        fndesc=descriptor,
        environment=environment,
        signature=signature,
        entry_point=target_context.get_executable(library, descriptor, environment),
        objectmode=False,
        lifted=(),
        reload_init=(),
    )
