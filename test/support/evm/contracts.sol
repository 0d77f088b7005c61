// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

// The token of mainnet as it behaves, with the names that it gives to what can be asked: six decimals, transfers that return nothing, a fee that
// its owner can switch on, a blacklist of senders whose funds it can destroy, a pause, approvals that must go through zero, an owner that can
// change, and a contract that can take its place: from then on this one only passes calls on, and its events come from there.
interface Successor {
  function transferByLegacy(address from, address to, uint256 value) external;
  function balanceOf(address who) external view returns (uint256);
}

contract QuirkyToken {
  string public name = "Tether USD";
  string public symbol = "USDT";
  uint8 public constant decimals = 6;
  uint256 public basisPointsRate;
  bool public paused;
  address public owner = msg.sender;
  mapping(address => uint256) private balances;
  mapping(address => mapping(address => uint256)) public allowance;
  mapping(address => bool) public isBlackListed;
  bool public deprecated;
  address public upgradedAddress;

  event Transfer(address indexed from, address indexed to, uint256 value);
  event Approval(address indexed owner, address indexed spender, uint256 value);
  event DestroyedBlackFunds(address who, uint256 balance);

  constructor(uint256 supply) {
    balances[msg.sender] = supply;
    emit Transfer(address(0), msg.sender, supply);
  }

  modifier onlyOwner() {
    require(msg.sender == owner);
    _;
  }
  function setFee(uint256 points) external onlyOwner { basisPointsRate = points; }
  function setPaused(bool now_) external onlyOwner { paused = now_; }
  function setBlacklisted(address who, bool now_) external onlyOwner { isBlackListed[who] = now_; }
  function destroyBlackFunds(address who) external onlyOwner {
    require(isBlackListed[who]);
    emit DestroyedBlackFunds(who, balances[who]);
    balances[who] = 0;
  }
  function setOwner(address next) external onlyOwner { owner = next; }
  function deprecate(address next) external onlyOwner { deprecated = next != address(0); upgradedAddress = next; }

  function balanceOf(address who) external view returns (uint256) {
    return deprecated ? Successor(upgradedAddress).balanceOf(who) : balances[who];
  }

  function _move(address from, address to, uint256 value) private {
    require(!paused && !isBlackListed[from]);
    if (deprecated) return Successor(upgradedAddress).transferByLegacy(from, to, value);
    uint256 fee = (value * basisPointsRate) / 10000;
    balances[from] -= value;
    balances[to] += value - fee;
    balances[owner] += fee;
    if (fee > 0) emit Transfer(from, owner, fee);
    emit Transfer(from, to, value - fee);
  }
  function transfer(address to, uint256 value) external { _move(msg.sender, to, value); }
  function transferFrom(address from, address to, uint256 value) external {
    allowance[from][msg.sender] -= value;
    _move(from, to, value);
  }
  function approve(address spender, uint256 value) external {
    require(value == 0 || allowance[msg.sender][spender] == 0);
    allowance[msg.sender][spender] = value;
    emit Approval(msg.sender, spender, value);
  }
}

// What takes the token's place: it believes the old contract.
contract NextToken {
  address private immutable old;
  mapping(address => uint256) public balanceOf;
  event Transfer(address indexed from, address indexed to, uint256 value);
  constructor(address before, address holder, uint256 supply) {
    old = before;
    balanceOf[holder] = supply;
  }
  function transferByLegacy(address from, address to, uint256 value) external {
    require(msg.sender == old);
    balanceOf[from] -= value;
    balanceOf[to] += value;
    emit Transfer(from, to, value);
  }
}

contract Bomb {
  constructor(address payable to) payable { selfdestruct(to); }
}

// What exchanges and contract wallets do: ether and tokens that no transaction's own fields show.
contract Forwarder {
  receive() external payable {}

  function halves(address payable to) external payable {
    (bool one, ) = to.call{value: msg.value / 2}("");
    (bool two, ) = to.call{value: msg.value - msg.value / 2}("");
    require(one && two);
  }
  function spread(address payable[] calldata to, uint256[] calldata amounts) external payable {
    for (uint256 i = 0; i < to.length; i++) {
      (bool sent, ) = to[i].call{value: amounts[i]}("");
      require(sent);
    }
  }
  function spreadTokens(QuirkyToken token, address[] calldata to, uint256[] calldata amounts) external {
    for (uint256 i = 0; i < to.length; i++) token.transfer(to[i], amounts[i]);
  }
  function sendAndRevert(address payable to) external payable {
    (bool sent, ) = to.call{value: msg.value}("");
    require(sent);
    revert("no");
  }
  // the call inside reverts after it has sent, and this one goes on
  function sendInReverted(address payable to) external payable {
    try this.sendAndRevert{value: msg.value}(to) {} catch {}
  }
  function destroy(address payable to) external payable { new Bomb{value: msg.value}(to); }
  // a call that takes its caller's storage and value, and moves nothing
  function delegated(address payable to) external payable {
    (bool done, ) = address(this).delegatecall(abi.encodeCall(this.halves, (to)));
    require(done);
  }
}
