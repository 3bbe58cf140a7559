"""How many BLAS threads a computation gets."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import EDRVFLClassifier
from edrvfl._seam.threads import PRODUCTS, WORK_OF_A_THREAD, _release_control, threads_of_system
from edrvfl._seam.threads import suitable_threads as threads_of_shape

SMALL, LARGE = PRODUCTS * WORK_OF_A_THREAD / 2, 2 * PRODUCTS * WORK_OF_A_THREAD


def suitable_threads(multiplications):
    """Threads for a product of 128 rows, 64 columns and as many neurons as make so many multiplications."""
    return threads_of_shape(np.zeros((128, 1)), 64, multiplications / (128 * 64))


def blas_threads():
    """Return the numbers of threads of the BLAS libraries in this process."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    """Give BLAS two threads, whatever the environment says."""
    with threadpool_limits(2, user_api="blas"):
        _release_control()  # otherwise only this Python thread could change the limit
        assert blas_threads() == {2}
        yield


def test_small_work_gets_one_thread_and_gives_the_others_back():
    with suitable_threads(SMALL):
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_large_work_is_not_limited():
    with suitable_threads(LARGE):
        assert blas_threads() == {2}


def test_no_thread_is_added():
    with threadpool_limits(1, user_api="blas"):
        _release_control()
        with suitable_threads(4 * LARGE):
            assert blas_threads() == {1}


def test_work_inside_work_keeps_the_limit_to_the_end():
    with suitable_threads(SMALL):
        with suitable_threads(SMALL):
            pass
        assert blas_threads() == {1}
        with suitable_threads(LARGE):
            pass
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_an_error_gives_the_threads_back():
    with pytest.raises(KeyError), suitable_threads(SMALL):
        raise KeyError
    assert blas_threads() == {2}


def test_the_last_computation_lifts_the_limit_that_another_python_thread_set():
    entered, leave, left = (threading.Event() for _ in range(3))
    seen = []

    def last():
        with suitable_threads(SMALL):
            entered.set()
            leave.wait(10)
            seen.append(blas_threads())
        left.set()

    worker = threading.Thread(target=last)
    with suitable_threads(SMALL):
        worker.start()
        entered.wait(10)
    leave.set()
    left.wait(10)
    assert seen == [{1}]  # the first has ended, and its end did not lift the limit
    assert blas_threads() == {2}
    worker.join()


def test_a_limit_of_ones_own_still_counts_afterwards():
    with suitable_threads(SMALL):
        pass
    seen = []

    def other():
        with threadpool_limits(1, user_api="blas"):
            seen.append(blas_threads())

    worker = threading.Thread(target=other)
    worker.start()
    worker.join()
    assert seen == [{1}]


def test_many_fits_at_once_leave_the_threads_as_they_were(noisy):
    X, y = noisy
    models = [EDRVFLClassifier(n_hidden=20, n_layers=3, random_state=i) for i in range(8)]
    workers = [threading.Thread(target=model.fit, args=(X, y)) for model in models]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert blas_threads() == {2}
    again = EDRVFLClassifier(n_hidden=20, n_layers=3, random_state=7).fit(X, y)
    np.testing.assert_array_equal(models[7].predict_proba(X), again.predict_proba(X))


def test_few_rows_get_one_thread_however_wide_they_are():
    with threads_of_shape(np.zeros((344, 7)), 608, 512):  # a full block, but the only one
        assert blas_threads() == {1}
    with threads_of_shape(np.zeros((5000, 7)), 608, 512):
        assert blas_threads() == {2}


@pytest.mark.parametrize(("columns", "threads"), [(300, 1), (1_000, 2)])
def test_a_small_system_is_factorised_on_one_thread_inside_large_work(columns, threads):
    with suitable_threads(LARGE), threads_of_system(columns):
        assert blas_threads() == {threads}
    assert blas_threads() == {2}
