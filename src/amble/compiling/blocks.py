"""Products with one matrix of a stack, read where it lies.

XLA copies a matrix that it picks out of a stack, and then computes the product. Inside one kernel rows can be read a
few at a time instead: such a copy stays in the nearest cache. Small matrices are copied faster than they are read in
pieces. For large ones, which come from the machine's memory, one long copy is as fast.
"""

from typing import Any

from amble.arrays import Array

ROWS = 8  # at a time
BYTES = 1 << 16, 1 << 20  # of a matrix: where reading in place is faster (measured: from 96 to 360 unknowns)


def read_in_place(stack: Any, index: Any) -> "OneOf | None":
    """Matrix `index` of the stack, to be multiplied with vectors; None where a copy of it is faster."""
    rows, columns = stack.shape[1:]
    return OneOf(stack, index) if BYTES[0] <= rows * columns * stack.dtype.itemsize <= BYTES[1] else None


class OneOf:
    """stack[index], for products with a vector from either side."""

    def __init__(self, stack: Any, index: Any) -> None:
        self.stack, self.index = stack, index
        self.rows, self.columns = stack.shape[1:]

    def __rmatmul__(self, vector: Array) -> Any:
        """vector @ matrix: the sum of the rows, each times its number."""
        import jax

        def some(begin: Any, count: int, total: Any) -> Any:
            for k in range(count):
                total = total + _entry(vector, begin + k) * self._some(begin + k, 1)[0]
            return total

        whole, rest = divmod(self.rows, ROWS)
        zero = jax.numpy.zeros(self.columns, self.stack.dtype)
        total = jax.lax.fori_loop(0, whole, lambda k, total: some(k * ROWS, ROWS, total), zero)
        return some(whole * ROWS, rest, total)

    def __matmul__(self, vector: Array) -> Any:
        """matrix @ vector: the product of a few rows after another."""
        import jax

        def some(begin: Any, count: int, products: Any) -> Any:
            return jax.lax.dynamic_update_slice(products, self._some(begin, count) @ vector, (begin,))

        whole, rest = divmod(self.rows, ROWS)
        zero = jax.numpy.zeros(self.rows, self.stack.dtype)
        products = jax.lax.fori_loop(0, whole, lambda k, products: some(k * ROWS, ROWS, products), zero)
        return some(whole * ROWS, rest, products) if rest else products

    def _some(self, begin: Any, count: int) -> Any:
        """So many rows from one on."""
        import jax

        index = jax.lax.convert_element_type(self.index, int)  # the type of a loop's counter
        sizes = 1, count, self.columns
        return jax.lax.dynamic_slice(self.stack, (index, begin, 0), sizes, allow_negative_indices=False)[0]


def _entry(vector: Any, k: Any) -> Any:
    import jax

    return jax.lax.dynamic_slice(vector, (k,), (1,), allow_negative_indices=False)[0]
