"""How are squares added up, and inverted, while other threads go on?

SciPy's own wrappers hold the interpreter's lock; NumPy's product writes the second
triangle in a slow loop every time, and its inverse does not know that a matrix is
symmetric. The routines themselves, called by their addresses, do none of this.
"""

import ctypes

from numba.extending import get_cython_function_address

from maxmargin.typing import FloatMatrix

_INT, _DOUBLE = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
_dsyrk = ctypes.CFUNCTYPE(
    None,
    *(ctypes.c_char_p, ctypes.c_char_p, _INT, _INT),
    *(_DOUBLE, ctypes.c_void_p, _INT, _DOUBLE, ctypes.c_void_p, _INT),
)(get_cython_function_address("scipy.linalg.cython_blas", "dsyrk"))
_of_triangle = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, _INT, ctypes.c_void_p, _INT, _INT
)
_dpotrf, _dpotri = (
    _of_triangle(get_cython_function_address("scipy.linalg.cython_lapack", name))
    for name in ("dpotrf", "dpotri")
)


def add_square(factor: float, rows: FloatMatrix, total: FloatMatrix) -> None:
    """total += factor rowsᵀ rows, in the lower triangle alone; both C-ordered."""
    n, d = rows.shape
    assert rows.flags.c_contiguous and total.flags.c_contiguous
    assert total.shape == (d, d) and rows.dtype == total.dtype == "float64"
    n_int, d_int = ctypes.c_int(n), ctypes.c_int(d)
    alpha, beta = ctypes.c_double(factor), ctypes.c_double(1.0)
    by = ctypes.byref
    out, room = rows.ctypes.data, total.ctypes.data
    _dsyrk(
        *(b"U", b"N", by(d_int), by(n_int)),
        *(by(alpha), out, by(d_int), by(beta), room, by(d_int)),
    )


def invert_positive(matrix: FloatMatrix) -> bool:
    """The inverse in place, in the lower triangle alone; whether there is one."""
    n = len(matrix)
    assert matrix.flags.c_contiguous and matrix.shape == (n, n)
    assert matrix.dtype == "float64"
    by, size, trouble = ctypes.byref, ctypes.c_int(n), ctypes.c_int(0)
    for routine in (_dpotrf, _dpotri):
        routine(b"U", by(size), matrix.ctypes.data, by(size), by(trouble))
        if trouble.value:
            return False
    return True
