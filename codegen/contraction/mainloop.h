// The mainloop of a block-level contraction on a GPU: what the codegen/contraction files know of it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/contraction/epilogue_split.h"
#include "codegen/lower/lower.h"
#include "ir/schedule.h"

namespace apl::lower {

constexpr std::int64_t kSwizzled = 32;  // rows that apl_swizzle permutes
constexpr std::int64_t kUnrolled = 8;   // steps of the depth; the period of apl_swizzle

// The M or the N dim of the contraction: a dim of the space, shared out among the threads of a block.
struct MnDim {
  std::size_t dim = 0;
  std::int64_t extent = 0;                      // rows of a tile
  std::int64_t warps = 1, lanes = 1, each = 1;  // their product: warps, threads of a warp, rows of a thread
  std::int64_t vector = 1;                      // neighbouring rows of a thread
  std::string warp_first, first;                // variables: where the warp's rows begin, and the thread's
  std::string results;                          // table: where rows lie in the result, -1 for nowhere
};

constexpr std::int64_t kDoublesDepth = 8;  // of a product of f64 by matrix units
// Where the rows of a tile begin that lie outside of the operand: nothing is read for them, and tiles have zeros or
// what was there before (apl_is_row of runtime/device/numbers.h). Reading one element of the operand for all of them
// would let all blocks of the device wait for one line of its cache.
constexpr std::int64_t kRowOutside = -(std::int64_t{1} << 62);
constexpr std::int64_t kTurnWarps = 4;    // warps that are each another scheduler's
constexpr std::int64_t kMatrixLine = 64;  // rows of a step that lie together in a tile of matrix units

constexpr std::size_t kNoMnDim = 2;  // of a tile that runs along the depth alone

// A number that is affine in the indices of a tile's window. What the rows of M and of N add to it is in tables in
// shared memory, by row; none: nothing.
struct TileNumber {
  TileAffine at{};
  std::array<std::string, 2> tables{};
};

// A tile in shared memory. The rows of one step of the depth lie together, xor-ed with apl_swizzle if it was transposed
// on the way.
struct OperandTile {
  ScalarType element{};
  std::vector<int> axes;                    // as the operand's
  std::size_t mn = kNoMnDim, row_axis = 0;  // the axis of the rows, if it has any
  std::int64_t depth = 1;                   // of the innermost dim
  Poly stride;                              // of rows in the source, or
  std::vector<TileGuard::Part> split;       // of the dims that are flattened into them
  bool by_depth = false, by_row = false;    // what is contiguous in the source
  bool swizzled = false, may_swizzle = false;
  std::int64_t element_bytes() const { return byte_size(element); }
  const char* swizzle() const { return element_bytes() == 8 ? "apl_swizzle<8>" : "apl_swizzle"; }
  std::int64_t vector() const { return 16 / element_bytes(); }  // elements of 16 bytes
  // Of matrix units: those of 8 bits want the steps of a row together, whatever the source has.
  bool lies_by_depth() const { return by_depth || element_bytes() == 1; }
  // Whether a copy has 16 bytes in the source and in the tile.
  bool has_vectors() const { return copy_bytes == 16 && (by_depth || (by_row && !lies_by_depth())); }
  std::int64_t copy_bytes = 16;                        // at most at once; 0: through registers
  std::string rows;                                    // table: where rows lie in the source
  std::array<std::optional<std::size_t>, 2> row_axes;  // the axes of the rows of M and of N
  std::vector<TileNumber> conditions;                  // what they ask for
  std::vector<TileGather> gathers;                     // along rows: what they add is in `rows`
  std::vector<TileNumber> also;                        // of a computed tile: where further arrays are read
  // An operand that no step changes: the thread's elements in registers, which are read before the steps. Positions, in
  // its source and in arrays of indices, are numbers of their own.
  bool resident = false;
  TileNumber position;
  std::vector<TileNumber> positions;
  std::string registers;
  std::int64_t offset = 0;  // in shared memory, bytes
  // Of matrix units: variables for the thread's first copy of a step, and an array of where its copies come from.
  std::string first_row, first_step, to, from;
};

// A copy of a step's tile: from `begin` of the source and its rows' positions on, to `stage` of the tile.
struct CopiedTile {
  struct OuterLoop {
    std::string index;  // empty for one element
    std::int64_t size;
  };
  const CopyTile& op;
  const OperandTile& tile;
  bool padded = true;  // what is not in the source is read, so it is filled
  kernel::ExprPtr target = {}, source = {}, begin = {}, stage = {}, thread = {};
  std::vector<OuterLoop> outer = {};  // over outer dims of the depth
  kernel::ExprPtr outer_inside = {};  // whether those are in the source; null: always
  kernel::ExprPtr left = {};          // steps of the innermost dim of the depth that are in the source; null: all are
  kernel::ExprPtr step_stride = kernel::literal(std::int64_t{0});  // of the same, in the source
  std::int64_t step_size = 0;                                      // of the same, in the tile
  // Under which conditions: a number for each without what rows and the innermost steps add, and what these do.
  std::vector<kernel::ExprPtr> numbers = {}, number_strides = {};
  std::vector<kernel::ExprPtr> also = {}, also_strides = {};  // the same of where further arrays are read

  kernel::ExprPtr inside(const kernel::ExprPtr& step) const;  // null: always
  bool inside_tile() const { return left && !padded; }        // what is inside the source is inside the tile, too
  kernel::Block in_outer_loops(kernel::Block body) const;
};

// Results of matrix units on their way through shared memory, so many lines of so many columns at once: of a warp if it
// has whole rows of the tile, else of the block. Lines are apart by what keeps warps from meeting in a bank.
struct MatrixStaging {
  std::int64_t teams, each, lines, width, apart;  // `each`: rows of a thread at once
  std::int64_t elements() const { return teams * lines * apart; }
};

// Variables for a step of loops in loops: the innermost index, and those around it, outermost first.
struct StepPosition {
  std::string inner;
  std::vector<std::string> around;
};

struct Mainloop {
  std::array<MnDim, 2> mn_dims;  // slow, fast
  MnDim one_row{.extent = 1};
  const MnDim& mn_of(const OperandTile& tile) const { return tile.mn == kNoMnDim ? one_row : mn_dims[tile.mn]; }
  std::int64_t threads = 0, registers = 0;
  std::size_t space_rank = 0;
  std::size_t inner_depth = 0;                    // the innermost dim of the depth
  std::map<Value, OperandTile> tiles;             // by block
  std::map<Value, Value> copied;                  // the block that a copy fills, by what it gives
  std::map<Value, const TileContract*> readers;   // by the same
  std::map<std::string, std::string> alignments;  // variables for conditions
  std::string thread, lane, warp;

  // The loop whose copies run ahead, and the branch behind it that is one more step, and loops over outer dims of the
  // depth around both, outermost first: copies run ahead from one turn of those into the next. A block computes several
  // tiles along the M dim if there are so many, and copies for the next one while it writes back.
  const Loop* loop = nullptr;
  const If* remainder = nullptr;
  std::vector<const Loop*> around;
  const Loop* outermost() const { return around.empty() ? loop : around.front(); }
  ScheduleStep main, remainder_step;
  std::int64_t stages = 3;
  int matrix_rows = -1;  // 0 or 1: steps are products of matrix units, whose 64 rows run along M or N
  // Products by matrix units from tiles as multiply-adds have them: of f64, or so many of tf32 for one of f32.
  bool doubles = false;
  int tf32_products = 0;
  bool matrix() const { return matrix_rows >= 0; }
  bool has_fragments() const { return doubles || tf32_products > 0; }
  // Whether warps that share a scheduler multiply and copy in turns.
  bool takes_turns() const { return has_fragments() && mn_dims[0].warps * mn_dims[1].warps >= 2 * kTurnWarps; }
  // Products that are under way while the next ones start, and how many steps copies run ahead, so that those do not
  // write where these read.
  std::int64_t in_flight() const { return matrix() && stages > 2 ? 1 : 0; }
  std::int64_t copies_ahead() const { return stages - 1 - in_flight(); }
  std::int64_t tiles_per_block = 8, tile_loop_from = 4096;  // if there are at least `tile_loop_from` blocks
  std::string tiles_name, steps;              // how many steps of the mainloop, and of all loops with the remainder
  std::string inner_steps;                    // of the innermost loop with the remainder
  StepPosition ahead;                         // of the next copies; with loops around it
  std::string per_block;                      // variable: tiles_per_block, or 1
  std::string tile_index, next, last, stage;  // variables: a tile is a value of the M dim's index
  kernel::ExprPtr half;                       // which half of the M dim's tables
  bool aligned = false;                       // of what is made now: matrix units' copies are of vectors
  kernel::ExprPtr reduces;                    // whether there are steps; null: sure

  // Code after the reduction that is done where results are stored (stored_code.cpp): the statement and its map; null:
  // there is none.
  const Stm* stored_stm = nullptr;
  const Screma* stored_each = nullptr;
  std::array<std::set<Value>, 2> stored_indices;  // of M and N in it
  Epilogue stored;
  std::vector<Stm> stored_beside;  // its reads of elements that lie where the results' do, its map's last parameters
};

class MainloopLowering final : public MainloopPart, KernelPart {
 public:
  explicit MainloopLowering(Kernel& kernel) : KernelPart(kernel) {}

  // Whether the kernel has a mainloop, with the tile numbers that it has.
  bool find(const SegOp& op);

  void tile_loop(const SegOp& op, Block& out) override;
  ExprPtr tile_loop_blocks(const SegOp& op, Values& host) const override;
  std::int64_t mainloop_stages(Value block) const override;
  bool is_mainloop(const Loop& loop) const override { return mainloop_->outermost() == &loop; }
  void mainloop_steps(const SegOp& op, const Stm& stm, Block& out) override;
  void mainloop_copy(const CopyTile& op, Value copied, const ExprPtr& stage, Block& out) override;
  void mainloop_contract(const TileContract& op, const Stm& stm, const ExprPtr& stage, Block& out) override;
  void mainloop_epilogue(const SegOp& op, const Screma& each, const Stm& stm, Block& out) override;
  void finish_copies(Block& out) override;

 private:
  std::unique_ptr<Mainloop> make_mainloop(const SegOp& op);
  void add_operand_tile(Mainloop& mainloop, const Schedule::Operand& scheduled, const TileOperand& operand,
                        const CopyTile& copy, bool resident);
  void mainloop_head(Block& out);
  void declare_positions(const ExprPtr& thread, Block& out);
  void declare_results_positions(Block& out);
  void fill_mainloop_tables(const SegOp& op, std::size_t s, Block& out);
  ExprPtr index_element(const TileGather& gather, const ExprPtr& further);
  std::vector<TileNumber*> numbers_of(OperandTile& tile);
  ExprPtr mainloop_stage(Value block, const ExprPtr& stage);
  void find_steps(Mainloop& mainloop, const Body& body);
  ExprPtr count_inner_steps(Values& values) const;
  ExprPtr count_steps(Values& values) const;
  void declare_steps(Block& out);
  Block next_step(const StepPosition& position);
  Block take_turns(Block copies, Block products);
  ExprPtr locate_block(const SegOp& op, Block& out);
  void tile_statements(const SegOp& op, Block& out);
  void one_tile(const SegOp& op, Block& out);
  void loop_over_tiles(const SegOp& op, const ExprPtr& start, Block& out);
  void for_tile(const SegOp& op, const std::string& tile, ExprPtr half);
  ExprPtr tile_loop_length(Values& values, const SegOp& op) const;
  ExprPtr mainloop_slot(std::size_t mn, const ExprPtr& m);
  Block mainloop_prefetch(const std::string& step, const ExprPtr& stage);
  bool mainloop_reads_no_pad(const CopyTile& op, Value copied);
  CopiedTile describe_copy(const CopyTile& op, Value copied, const ExprPtr& stage, Block& out);
  ExprPtr row_is_inside(const OperandTile& tile, const ExprPtr& at, Block& out);
  Block copy_elements(const CopiedTile& copy, const ExprPtr& to, const ExprPtr& at, const ExprPtr& step,
                      std::int64_t width, const ExprPtr& row_inside);
  bool has_row_vectors(const OperandTile& tile) const;
  void zero_outside(const SegOp& op, const ExprPtr& end_of_m, Block& out);
  ExprPtr row_in_source(const OperandTile& tile, const ExprPtr& m);
  void number_conditions(CopiedTile& copy, Block& out);
  std::pair<ExprPtr, ExprPtr> number_at(const CopiedTile& copy, const TileAffine& at, Block& out);
  ExprPtr conditions_hold(const CopiedTile& copy, const ExprPtr& m, const ExprPtr& step);
  Block copy_each(const CopiedTile& copy);
  void read_resident(const CopyTile& op, OperandTile& tile, Block& out);
  ExprPtr row_in_tile(const OperandTile& tile, const ExprPtr& m, const ExprPtr& step);
  kernel::Stmt copy_along_depth(const CopiedTile& copy);
  Block copy_vectors_along_depth(const CopiedTile& copy);
  Block copy_along_rows(const CopiedTile& copy, std::int64_t width);
  Block copy_same_rows(const CopiedTile& copy, std::int64_t width, const std::string& e);
  ExprPtr mainloop_alignment(const CopyTile& op, const OperandTile& tile, std::int64_t width);
  void declare_matrix_copies(Block& out);
  void place_matrix_copies(Block& out);
  ExprPtr matrix_position(const OperandTile& tile, const ExprPtr& row, const ExprPtr& step);
  Block copy_matrix_tile(const CopiedTile& copied);
  Block copy_computed(const CopiedTile& copied);
  ExprPtr matrix_alignment(const CopyTile& op, const OperandTile& tile);
  ExprPtr vector_alignment(const CopyTile& op, const OperandTile& tile);
  ExprPtr all_aligned();
  ExprPtr alignment_variable(const CopyTile& op, const std::vector<Poly>& positions, std::int64_t width);
  Block fragments_product(const TileContract& op, const Stm& stm, const ExprPtr& stage, const std::vector<ExprPtr>& at);
  Block matrix_product(const TileContract& op, const Stm& stm, const ExprPtr& stage, const std::vector<ExprPtr>& at);
  void start_products(const Stm& stm, Block& out);
  void finish_products(const Stm& stm, Block& out);
  void on_sums(const char* function, const Stm& stm, Block& out);
  // What goes from registers to memory: results, one each, or the sum that code makes all results of.
  struct Passage {
    std::string from;
    ScalarType element;
    std::vector<std::string> targets;
  };
  // An element in the block, and arrays of what the code has read once for its row and for columns.
  struct StoredPlace {
    ExprPtr row, column, nth_column = number_of(0);
    std::vector<std::string> of_row = {}, of_column = {};
  };
  using Numbered = std::function<ExprPtr(const ExprPtr&)>;
  Poly stored_position(const SegOp& op) const;
  void prepare_stored_code(const SegOp& op);
  void place_stored(std::size_t s, const ExprPtr& at, const std::vector<Stm>& code, Block& out);
  std::vector<std::string> stored_reads(std::size_t s, std::int64_t count, const Numbered& at, const Numbered& inside,
                                        Block& out);
  std::vector<ExprPtr> stored_results(const ExprPtr& sum, const StoredPlace& place, const std::vector<ExprPtr>& beside,
                                      Block& out);
  Block store_element(const Passage& passage, const ExprPtr& value, const ExprPtr& position, const StoredPlace& place);
  Block store_vector(const Passage& passage, const ExprPtr& from, const ExprPtr& position,
                     const std::function<StoredPlace(const ExprPtr&)>& place);
  std::vector<ExprPtr> read_beside(const ExprPtr& position);
  std::vector<std::string> arrays_beside();
  std::vector<Passage> passages(const SegOp& op);
  void mainloop_write(const SegOp& op, Block& out);
  ExprPtr aligned_results(const SegOp& op);
  void matrix_write(const SegOp& op, Block& out);
  void matrix_write_staged(const SegOp& op, Block& out);

  std::unique_ptr<Mainloop> mainloop_;
  Block mainloop_declarations_;  // of what is known at the kernel's start
  bool copies_pending_ = false;
  std::int64_t own_staging_ = -1;  // where results are staged that tiles have no room for; -1: nowhere yet
};

inline kernel::Stmt unrolled(std::string name, std::int64_t count, kernel::Block body) {
  kernel::Stmt loop = kernel::for_loop(kernel::kInt, std::move(name), number_of(count), std::move(body));
  loop.unroll = true;
  return loop;
}

inline void append(kernel::Block& out, kernel::Block more) {
  out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace apl::lower
