// cp.async: a thread's copies from issue to the wait that covers them.
#include "kernels/simt/block.h"
#include "kernels/simt/report.h"

namespace simt {

void copy_issue(const async_copy &c) {
    uintptr_t both = (uintptr_t)c.to | (c.valid ? (uintptr_t)c.from : 0);
    if (both % 16 != 0) fail("cp.async: an address is not 16-byte aligned");
    current->copies.push_back(pending_copy{c, current->copy_group});
}

void copy_commit() {
    current->copy_group++;
}

bool copy_take(int groups_left, async_copy *next) {
    std::vector<pending_copy> &copies = current->copies;
    // Groups stand in the order of issue; what was never committed is covered by no wait.
    if (copies.empty() || copies.front().group >= current->copy_group - groups_left) return false;
    *next = copies.front().copy;
    copies.erase(copies.begin());
    return true;
}

} // namespace simt
